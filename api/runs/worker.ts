import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { mapping } from '../../engine/mapping.ts';
import { uuid } from '../fields/ids.ts';
import { timestamp } from '../fields/timestamp.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { bodyHash, completeBody, failBody, heartbeatBody, runId, runningBody, startBody } from './changes.ts';
import { completeRun } from './complete.ts';
import { completeExample, failExample, logsExample } from './examples.ts';
import { heartbeat } from './heartbeat.ts';
import { logsBody } from './log_entries.ts';

const statusSchema = z
  .object({
    status: z
      .string()
      .describe(
        '`running`; `cancelling` if the worker is to stop; or how the run ended: `succeeded`, `failed`, `cancelled`.',
      ),
  })
  .meta({ id: 'RunStatus', example: { status: 'running' } });

const startedFields = {
  organizationId: z.string(),
  agentProfileId: z.string(),
  runRequestId: z.string(),
  runId: z.string(),
  attempt: z.int(),
  executionToken: z
    .string()
    .describe('Bearer token for the agent, for the agent endpoints. It expires with the lease.'),
};
const responseFields = {
  ...startedFields,
  organizationId: uuid,
  agentProfileId: uuid,
  runRequestId: uuid,
  runId: uuid,
  leaseExpiresAt: z.iso.datetime().describe('Without a heartbeat the lease ends at this time.'),
  heartbeatIntervalMs: z.int().describe('How often to send a heartbeat, in milliseconds.'),
};
const turnFields = { kind: z.literal('chat_turn'), chatId: z.string(), messageId: z.string() };

const startResponse = z
  .discriminatedUnion('kind', [
    z.object({ kind: z.literal('run'), taskId: uuid, ...responseFields }),
    z.object({ ...turnFields, chatId: uuid, messageId: uuid, ...responseFields }),
  ])
  .meta({ id: 'RunStarted' });

const startedRow = z.union([
  z.object({ ...turnFields, ...startedFields, leaseExpiresAt: timestamp }),
  z
    .object({ taskId: z.string(), ...startedFields, leaseExpiresAt: timestamp })
    .pipe(mapping((run) => ({ kind: 'run' as const, ...run }))),
]);

/** The lifecycle of a run. Each call is safe to send again; each is one transition. */
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
        'Counts the attempt, takes a snapshot of the inputs and issues the execution token of the agent. For a chat turn the response has the kind `chat_turn` and names the message to write. If there is no free capacity, because limits were lowered after the pull, the call is 409 with `capacity`, no attempt is counted, and the run request is published again. Safe to repeat.',
      params: { runRequestId: uuid.describe('The run request, as returned by the pull.') },
      body: startBody,
      response: { data: startResponse },
      async handler({ db, services, params, body }) {
        const { leaseSeconds } = services.config;
        const args = {
          organizationId: body.organizationId,
          runRequestId: params.runRequestId,
          runId: body.runId,
          leaseToken: body.leaseToken,
          workerId: body.workerId,
          leaseSeconds,
        };
        const started = await call(db, 'run_start', args, startedRow);
        return { ...started, heartbeatIntervalMs: Math.floor((leaseSeconds * 1000) / 3) };
      },
    }),
    endpoint({
      method: 'post',
      path: '/internal/runs/{runId}/running',
      audience: 'worker',
      tag: 'Workers',
      operationId: 'markRunRunning',
      summary: 'Report that a run is running',
      description:
        'With the harness, model and workspace that the worker uses, as far as it knows them. Of a cancelled run they are kept too, and the status is `cancelling`. Safe to repeat.',
      params: { runId },
      body: runningBody,
      response: { data: statusSchema },
      handler({ db, params, body }) {
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
      summary: 'Renew the lease of a run',
      description:
        'Extends the lease by `LEASE_SECONDS` from now. Send one every `heartbeatIntervalMs`. With `waitMs` the response comes as soon as the run is cancelled, else after that time. The status `cancelling` tells the worker to stop: heartbeats renew the lease for `CANCEL_GRACE_SECONDS` after the cancel, and the run request ends when the worker completes or fails the run, or when the lease ends. Usage that is reported until then is kept.',
      params: { runId },
      body: heartbeatBody,
      response: { data: statusSchema },
      handler: ({ db, services, params, body, signal }) => heartbeat({ db, services, signal }, params.runId, body),
    }),
    endpoint({
      method: 'post',
      path: '/internal/runs/{runId}/logs',
      audience: 'worker',
      tag: 'Workers',
      operationId: 'appendRunLogs',
      summary: 'Append log entries',
      description:
        'Up to 100 entries of safe technical metadata, one line each. An entry with a known sequence is ignored if it is the same, and 409 with `differs` if not. If an entry contains a credential, the whole batch is 400. A log keeps 10,000 entries and is `truncated` after that.',
      params: { runId },
      body: logsBody,
      response: { data: statusSchema },
      example: { body: logsExample },
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
      summary: 'Complete a run with its result',
      description: [
        'The backend evaluates the acceptance criteria on the stored files. If all pass, the run has `succeeded` and the task is completed, or goes to phase `verify` if its spec asks for that. If one fails, the run has `failed`; the task is tried once more, and after that a person is asked.',
        'A plan or verify run applies the outcome that its agent submitted. Without one it has failed with `outcome_missing` and is tried again while attempts are left. A chat turn is completed with a `chat_message`.',
        'An artifact that was not stored, or a result that differs from the submitted outcome, is 400, and the lease stays valid. If the run was cancelled, usage and log state are kept and the status is `cancelled`. Repeating the call returns the same status; another body is 409 with `differs`.',
      ].join('\n\n'),
      params: { runId },
      body: completeBody,
      response: { data: statusSchema },
      example: { body: completeExample, data: { status: 'succeeded' } },
      async handler({ db, services, params, body, signal }) {
        const ended = await completeRun({ db, services, signal }, params.runId, body, bodyHash(body));
        services.metrics.runsEnded.inc({ call: 'complete', outcome: ended.status });
        return ended;
      },
    }),
    endpoint({
      method: 'post',
      path: '/internal/runs/{runId}/fail',
      audience: 'worker',
      tag: 'Workers',
      operationId: 'failRun',
      summary: 'Fail a run',
      description:
        'If the error is retryable and attempts are left, the task is tried again after a backoff; otherwise it has failed. A chat turn is not run again: its reply has failed. Safe to repeat.',
      params: { runId },
      body: failBody,
      response: { data: statusSchema },
      example: { body: failExample, data: { status: 'failed' } },
      async handler({ db, services: { config, metrics }, params, body }) {
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
        const ended = await call(db, 'run_fail', args, statusSchema);
        metrics.runsEnded.inc({ call: 'fail', outcome: ended.status });
        return ended;
      },
    }),
  ];
}
