import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { taskInputKey } from '../../engine/storage/index.ts';
import { filePath } from '../fields/file_path.ts';
import { organizationId, taskRef } from '../fields/ids.ts';
import {
  type ReceivedFile,
  storeAndRecord,
  storedFileRow,
  storedFileSchema,
  UPLOAD_MAX_BYTES,
} from '../files/stored_file.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';

const looked = z.object({ taskId: z.string() });
const stored = z.object({ input: storedFileRow });

/**
 * `PUT …/tasks/{taskRef}/inputs/{path}`: stores an input that `spec.inputs` names as `{kind: upload, path}`. Twice the
 * same path: the newer bytes go to later runs, and a run keeps those that it was given.
 */
export function taskInputEndpoint(audience: 'owner' | 'agent', path: `/${string}`): Endpoint {
  return endpoint({
    method: 'put',
    path,
    audience,
    tag: audience === 'owner' ? 'Tasks' : 'Agent tools',
    operationId: audience === 'owner' ? 'putTaskInput' : 'putTaskInputAsAgent',
    costly: true,
    summary: 'Upload an input of a task',
    description:
      'Stores the file that `spec.inputs` names as `{kind: upload, path}`. A run gets the files that exist when it starts, so upload before the task can run: create it with a `scheduledAt` or a prerequisite. The backend determines size, digest and media type from the bytes. Uploading to the same path again replaces the file for later runs.',
    params: { organizationId, taskRef, path: filePath.describe('`path` of the input in `spec.inputs`.') },
    body: { stream: true, mediaTypes: ['application/octet-stream'], maxBytes: UPLOAD_MAX_BYTES },
    response: { status: 201, data: storedFileSchema },
    example: { data: { path: 'sales.csv', mediaType: 'text/csv', sizeBytes: 48_213 } },
    errors: [
      { status: 404, code: 'task_not_found', when: 'the task does not exist in this organization' },
      { status: 409, code: 'state_conflict', when: 'the task is no longer open, or has 200 uploaded inputs' },
    ],
    async handler({ db, services, params, caller, openBody, signal }) {
      const args = (file: ReceivedFile | null) => ({
        organizationId: params.organizationId,
        taskRef: params.taskRef,
        path: params.path,
        storageKey: file?.key,
        size: file?.size,
        sha256: file?.sha256,
        mediaType: file?.mediaType,
        actor: actorOf(caller),
      });
      // Nobody's bytes are taken for a task that is not there.
      const { taskId } = await call(db, 'task_input_put', args(null), looked);
      const key = taskInputKey(params.organizationId, taskId);
      const upload = { key, path: params.path, source: openBody(), signal };
      return storeAndRecord(services.storage, upload, async (file) => {
        const { input } = await call(db, 'task_input_put', args(file), stored);
        return input;
      });
    },
  });
}
