import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { call, type Queries } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';
import type { Json } from '../../engine/db/sql_types.ts';
import {
  contextKey,
  type Storage,
  StorageBrokenError,
  StorageMissingError,
  StorageTooLargeError,
  verifying,
} from '../../engine/storage/index.ts';
import { ATTACHMENT_MAX_BYTES, getAttachmentBytes } from '../chat_attachments/schema.ts';
import { organizationId, uuid } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { invalid, toProblem } from '../http/errors.ts';
import { ids } from '../http/openapi/example_values.ts';
import { department } from '../organizations/schema.ts';
import { getArtifactBytes } from '../runs/files.ts';
import { contextSourceRow, contextSourceSchema } from './sources.ts';

const common = {
  department: department
    .optional()
    .describe('The department that the evidence is for. Default: the whole organization.'),
  title: z.string().min(1).max(500).optional(),
};

const retentionBody = z
  .discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('chat_attachment'), chatId: uuid, attachmentId: uuid, ...common }),
    z.strictObject({
      kind: z.literal('run_artifact'),
      runId: uuid,
      artifactIndex: z.int().min(0).max(100_000).describe('Position in `output.result.artifacts` of the run, from 0.'),
      ...common,
    }),
  ])
  .meta({ id: 'NewContextSource' });
type Retention = z.output<typeof retentionBody>;

type Found = Readonly<{ key: string; size: number; sha256: string; mediaType: string; fileName: string }>;

async function find(db: Queries, storage: Storage, organization: string, body: Retention) {
  const root = `org://${organization}`;
  if (body.kind === 'chat_attachment') {
    const file: Found = await getAttachmentBytes(db, organization, body.chatId, body.attachmentId);
    const place = `chats/${body.chatId}/attachments/${body.attachmentId}`;
    return { file, origin: 'chat', provenance: `${root}/${place}`, dedupeKey: place };
  }
  const file: Found = await getArtifactBytes(db, storage, organization, body.runId, body.artifactIndex);
  const place = `runs/${body.runId}/artifacts/${body.artifactIndex}`;
  return { file, origin: 'task', provenance: `${root}/${place}`, dedupeKey: place };
}

/** Copies the bytes, which have to be those that were recorded. @throws Problem 409 where they are not */
async function copy(storage: Storage, file: Found, key: string, signal: AbortSignal): Promise<void> {
  const check = verifying(file);
  try {
    const source = await storage.get(file.key, { signal });
    // Ends with the copy: a reader that is not taken to its end would keep its file open.
    const reading = pipeline(source, check, { signal }).catch((error: unknown) => check.destroy(error as Error));
    await storage.put(key, check, { maxBytes: ATTACHMENT_MAX_BYTES, signal });
    await reading;
  } catch (error) {
    check.destroy();
    if (error instanceof StorageBrokenError || error instanceof StorageMissingError) {
      throw new Problem(409, 'state_conflict', 'The stored bytes are gone, or not those that were recorded.');
    }
    if (error instanceof StorageTooLargeError) throw tooLarge();
    throw error;
  }
}

const tooLarge = () => invalid('', `names a file of more than ${ATTACHMENT_MAX_BYTES} bytes`, 'too_large');
const retainResult = z.object({ source: contextSourceRow.nullable(), stored: z.boolean() });

/** The name alone, as long as names of sources may be. */
function sourceName(fileName: string): string {
  const name = path.posix.basename(fileName);
  return [...name].slice(-255).join('');
}

/**
 * `POST …/context/sources`: keeps a copy of a chat's attachment or of a run's artifact as evidence, which then does
 * not go with the chat. Asked for again: the same source.
 */
export function retainSourceEndpoint(audience: 'owner' | 'agent', where: `/${string}`): Endpoint {
  return endpoint({
    method: 'post',
    path: where,
    audience,
    tag: audience === 'owner' ? 'Context' : 'Agent tools',
    operationId: audience === 'owner' ? 'retainContextSource' : 'retainContextSourceAsAgent',
    summary: 'Retain an attachment or artifact as a source',
    description:
      `Copies the file, which has at most 50 MiB. The source is \`stored\` until a job has read it; then it is \`ingested\` and can serve as evidence. Repeating the call returns the same source. ${
        audience === 'agent'
          ? 'For the service token and runs of operator and chat profiles; anything else is 401.'
          : ''
      }`.trim(),
    params: { organizationId },
    body: retentionBody,
    response: { status: 201, data: contextSourceSchema },
    example: {
      body: {
        kind: 'chat_attachment',
        chatId: ids.chat,
        attachmentId: ids.attachment,
        department: 'growth',
      },
    },
    errors: [
      { status: 404, code: 'attachment_not_found', when: 'the chat has no attachment with this id' },
      { status: 404, code: 'run_not_found', when: 'the run does not exist in this organization' },
      { status: 404, code: 'not_found', when: 'the run has no artifact at this position' },
      {
        status: 409,
        code: 'state_conflict',
        when: 'the stored bytes are damaged, or the organization has 10,000 sources',
      },
    ],
    external: true,
    costly: true,
    async handler({ db, services, params, body, caller, signal, commit }) {
      const { storage } = services;
      const organization = params.organizationId;
      const retain = (on: Queries, source: Json | null) => {
        const args = { organizationId: organization, source, actor: actorOf(caller) };
        return call(on, 'context_source_retain', args, retainResult);
      };
      await retain(db, null);
      const { file, origin, provenance, dedupeKey } = await find(db, storage, organization, body);
      if (file.size > ATTACHMENT_MAX_BYTES) throw tooLarge();
      const storageKey = contextKey(organization, 'sources');
      await copy(storage, file, storageKey, signal);
      try {
        const asked = {
          origin,
          kind: file.mediaType === 'text/markdown' ? 'markdown' : 'file',
          fileName: sourceName(file.fileName),
          mediaType: file.mediaType,
          sizeBytes: file.size,
          sha256: file.sha256,
          storageKey,
          department: body.department,
          title: body.title,
          provenanceUrls: [provenance],
          dedupeKey,
        };
        let copied = true;
        const retained = await commit(async (on) => {
          const { source, stored } = await retain(on, asked);
          if (source === null) throw new Error('a retained source was not recorded');
          copied = stored;
          return source.source;
        });
        if (!copied) await storage.delete(storageKey);
        return retained;
      } catch (error) {
        if (toProblem(error).problem.status < 500) await storage.delete(storageKey);
        throw error;
      }
    },
  });
}
