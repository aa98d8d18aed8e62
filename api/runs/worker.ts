import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { mapping } from '../../engine/mapping.ts';
import { CHAT_CHANNEL, chatPayload } from '../chats/events/hub.ts';
import { uuid } from '../fields/ids.ts';
import { requireOwnUris } from '../fields/logical_uri.ts';
import { timestamp } from '../fields/timestamp.ts';
import { type Context, type Endpoint, endpoint } from '../http/endpoint.ts';
import { PULL_CHANNEL } from '../run_requests/pull_broker.ts';
import { bodyHash, completeBody, failBody, heartbeatBody, runId, runningBody, startBody } from './changes.ts';
import { completeRun, type Ended, endedSchema } from './complete.ts';
import { logsBody } from './log_entries.ts';

const statusSchema = z.object({ status: z.string() }).meta({ id: 'RunStatus' });

const startedFields = {
  organizationId: z.string(),
  agentProfileId: z.string(),
  runRequestId: z.string(),
  runId: z.string(),
  attempt: z.int(),
  executionToken: z.string().describe('Execution capability of the agent that runs: bearer of the agent endpoints.'),
};
const answeredFields = { ...startedFields, leaseExpiresAt: z.iso.datetime(), heartbeatIntervalMs: z.int() };
const turnFields = { kind: z.literal('chat_turn'), chatId: z.string(), messageId: z.string() };

const startAnswer = z
  .discriminatedUnion('kind', [
    z.object({ kind: z.literal('run'), taskId: z.string(), ...answeredFields }),
    z.object({ ...turnFields, ...answeredFields }),
  ])
  .meta({ id: 'RunStarted' });

const startedRow = z.union([
  z.object({ ...turnFields, ...startedFields, leaseExpiresAt: timestamp }),
  z
    .object({ taskId: z.string(), ...startedFields, leaseExpiresAt: timestamp })
    .pipe(mapping((run) => ({ kind: 'run' as const, ...run }))),
]);

/** The end of a run, told to pulls that wait for its slot and to those who follow its chat. */
function notifyRunEnded(
  notify: Context['notify'],
  organizationId: string,
  { status, chatId }: Ended,
): { status: string } {
  notify(PULL_CHANNEL);
  if (chatId !== undefined) notify(CHAT_CHANNEL, chatPayload(organizationId, chatId));
  return { status };
}

/** Contract 4.13, but for complete. Each is safe to send again; each is one transition. */
export function runLifecycleEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'post',
      path: '/internal/run-requests/{runRequestId}/start',
      audience: 'worker',
      tag: 'Workers',
      operationId: 'startRun',
      summary: 'Start a run attempt',
      description:
        'Counts the attempt, fixes what the run is given and issues its execution token. A chat turn answers `chat_turn`, with the message that it is to write. Without free capacity (limits were lowered after the pull) nothing is counted and the request is published again.',
      params: { runRequestId: uuid },
      body: startBody,
      response: { data: startAnswer },
      async handler({ db, services, params, body, notify }) {
        const { leaseSeconds } = services.config;
        const args = {
          organizationId: body.organizationId,
          runRequestId: params.runRequestId,
          runId: body.runId,
          leaseToken: body.leaseToken,
          workerId: body.workerId,
          leaseSeconds,
        };
        const started = await call(db, 'run_start', args, startedRow).catch((error: unknown) => {
          // Refused, the request may be published again for others.
          notify(PULL_CHANNEL);
          throw error;
        });
        return { ...started, heartbeatIntervalMs: Math.floor((leaseSeconds * 1000) / 3) };
      },
    }),
    endpoint({
      method: 'post',
      path: '/internal/runs/{runId}/running',
      audience: 'worker',
      tag: 'Workers',
      operationId: 'markRunRunning',
      summary: 'Say that the run is running, and on what',
      params: { runId },
      body: runningBody,
      response: { data: statusSchema },
      handler({ db, params, body }) {
        requireOwnUris(body.organizationId, { workspaceUri: body.workspaceUri });
        const args = {
          organizationId: body.organizationId,
          runId: params.runId,
          leaseToken: body.leaseToken,
          harness: body.harness,
          model: body.model,
          workspaceUri: body.workspaceUri,
        };
        return call(db, 'run_running', args, statusSchema);
      },
    }),
    endpoint({
      method: 'post',
      path: '/internal/runs/{runId}/heartbeat',
      audience: 'worker',
      tag: 'Workers',
      operationId: 'heartbeat',
      summary: 'Renew the lease',
      description:
        'By the duration that the backend is configured with. `cancelling` tells the worker to stop: the lease is not renewed any more, and the run ends with the last word of the worker or with its lease.',
      params: { runId },
      body: heartbeatBody,
      response: { data: statusSchema },
      handler: ({ db, services, params, body }) =>
        call(
          db,
          'run_heartbeat',
          {
            organizationId: body.organizationId,
            runId: params.runId,
            leaseToken: body.leaseToken,
            leaseSeconds: services.config.leaseSeconds,
          },
          statusSchema,
        ),
    }),
    endpoint({
      method: 'post',
      path: '/internal/runs/{runId}/logs',
      audience: 'worker',
      tag: 'Workers',
      operationId: 'appendRunLogs',
      summary: 'Keep a batch of log entries',
      description:
        'Safe technical metadata, one line each. A sequence sent again with the same content is ignored, with other content refused. Text that carries a credential is refused whole. Beyond 10,000 entries the log is truncated.',
      params: { runId },
      body: logsBody,
      response: { data: statusSchema },
      handler: ({ db, params, body }) =>
        call(
          db,
          'run_logs_append',
          {
            organizationId: body.organizationId,
            runId: params.runId,
            leaseToken: body.leaseToken,
            entries: body.entries,
          },
          statusSchema,
        ),
    }),
    endpoint({
      method: 'post',
      path: '/internal/runs/{runId}/complete',
      audience: 'worker',
      tag: 'Workers',
      operationId: 'completeRun',
      summary: 'Finish the run with a result',
      description:
        'The backend evaluates the acceptance criteria on the bytes that it stored. All pass: the task is completed. One fails: the answer is `failed`, and the task is tried once more, then a person is asked. A task whose spec asks for the verdict of an agent goes to phase verify first. A plan or verify run applies the outcome that its agent has handed in; without one it has failed (`outcome_missing`) and is tried again while attempts are left. A result that differs from a staged outcome is 400, and the lease stays. After a cancel only usage and logs are kept: `cancelled`. An artifact that was never stored is 400, and the lease stays. A chat turn is completed by `chat_message`, with which its answer is complete.',
      params: { runId },
      body: completeBody,
      response: { data: statusSchema },
      async handler({ db, services, params, body, notify, signal }) {
        requireOwnUris(body.organizationId, { workspaceUri: body.workspaceUri });
        const ended = await completeRun({ db, services, signal }, params.runId, body, bodyHash(body));
        return notifyRunEnded(notify, body.organizationId, ended);
      },
    }),
    endpoint({
      method: 'post',
      path: '/internal/runs/{runId}/fail',
      audience: 'worker',
      tag: 'Workers',
      operationId: 'failRun',
      summary: 'Finish the run with a failure',
      description:
        'Retryable, with attempts left: tried again after a backoff. Else the task has failed. A chat turn is never run again: its answer has failed.',
      params: { runId },
      body: failBody,
      response: { data: statusSchema },
      async handler({ db, services: { config }, params, body, notify }) {
        const { organizationId, leaseToken, error, ...report } = body;
        const args = {
          organizationId,
          runId: params.runId,
          leaseToken,
          bodyHash: bodyHash(body),
          error,
          report,
          maxAttempts: config.runRequestMaxAttempts,
          backoffSeconds: config.retryBackoffSeconds,
          backoffMaxSeconds: config.retryBackoffMaxSeconds,
        };
        return notifyRunEnded(notify, organizationId, await call(db, 'run_fail', args, endedSchema));
      },
    }),
  ];
}
