import { openAsBlob } from 'node:fs';
import { z } from 'zod';
import { type Conversation, chatTurnSchema, conversationSchema, writtenSchema } from './chat_schemas.ts';
import { redact } from './redact.ts';

const REQUEST_TIMEOUT_MS = 30_000;

/** A response that is not 2xx, with the machine code of the error envelope. */
export class ApiError extends Error {
  override name = 'ApiError';
  readonly status: number;
  readonly code: string;
  /** What a 409 of the run lifecycle is about: lease_lost, capacity, task_not_ready, differs. */
  readonly reason: string;

  constructor(status: number, code: string, reason: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.reason = reason;
  }
}

/** A file that was there when the folder was read is gone or may not be read. */
export class UnreadableFileError extends Error {
  override name = 'UnreadableFileError';
}

/** fetch throws a TypeError when there is no response, and another when a response breaks off in the middle. */
function isNetworkError(error: unknown): boolean {
  if (error instanceof DOMException) return error.name === 'TimeoutError';
  return error instanceof TypeError && (error.message === 'fetch failed' || error.message === 'terminated');
}

/** Whether the response was lost or never made: every call here may then be repeated as it is. */
export function isRetryable(error: unknown): boolean {
  if (!(error instanceof ApiError)) return isNetworkError(error);
  return error.status >= 500 || error.status === 429 || error.status === 408;
}

const errorEnvelope = z.object({
  error: z.object({
    code: z.string(),
    issues: z.array(z.object({ code: z.string(), message: z.string() })).optional(),
  }),
  message: z.string(),
});
const envelope = z.object({ data: z.unknown(), meta: z.object({ timestamp: z.iso.datetime() }) });

export const taskSchema = z.looseObject({
  id: z.string(),
  identifier: z.string(),
  title: z.string(),
  agentRunCount: z.int().optional(),
  spec: z.looseObject({
    objective: z.string().optional(),
    acceptanceCriteria: z.array(z.unknown()).optional(),
    budget: z.looseObject({ maxAttemptsPerPhase: z.int().optional() }).optional(),
  }),
  state: z.looseObject({}).optional(),
});
export type Task = z.output<typeof taskSchema>;

const claimFields = {
  organizationId: z.string(),
  runRequestId: z.string(),
  leaseToken: z.string(),
  attempt: z.int(),
  mode: z.string(),
  leaseExpiresAt: z.iso.datetime({ offset: true }),
  agentProfile: z.looseObject({ key: z.string(), name: z.string() }),
};
const taskItemSchema = z.looseObject({ ...claimFields, task: taskSchema });
const chatItemSchema = z.looseObject({ ...claimFields, chat: chatTurnSchema });
const pullItemSchema = z.union([taskItemSchema, chatItemSchema]);

/** A claimed run request of a task, and for how long it is ours by the server's clock. */
export type Claim = z.output<typeof taskItemSchema> & { claimMs: number };
/** A claimed run request of a chat: a message that waits for its reply. */
export type ChatClaim = z.output<typeof chatItemSchema> & { claimMs: number };

export function isChatClaim(claim: Claim | ChatClaim): claim is ChatClaim {
  return 'chat' in claim;
}

const startedSchema = z.looseObject({
  runId: z.string(),
  attempt: z.int(),
  leaseExpiresAt: z.iso.datetime({ offset: true }),
  heartbeatIntervalMs: z.number(),
  executionToken: z.string(),
});

const inputSchema = z.looseObject({
  path: z.string(),
  mediaType: z.string(),
  sizeBytes: z.number(),
  sha256: z.string().nullish(),
  available: z.boolean(),
});
export type Input = z.output<typeof inputSchema>;

const versionsSchema = z.looseObject({ version: z.int(), graphRevision: z.int() });
const statusSchema = z.looseObject({ status: z.string() });
/** Where a task stands, and why it does not run. */
const explanationSchema = z.looseObject({
  status: z.string(),
  causes: z.array(z.looseObject({ kind: z.string(), message: z.string(), until: z.string().optional() })),
});
/** The checks that the last result failed. */
const refusedSchema = z.looseObject({
  state: z.looseObject({
    contract: z.looseObject({ checks: z.array(z.looseObject({ summary: z.string() })) }).optional(),
  }),
});

export type LogEntry = Readonly<{
  sequence: number;
  category: string;
  status: string;
  label: string;
  detail: string;
  occurredAt: string;
}>;

/** The run that a call is about, and the token that fences it. */
export type Lease = Readonly<{
  organizationId: string;
  runId: string;
  leaseToken: string;
  /** Left out of whatever is sent about the run: the API refuses a text that holds one. */
  secrets?: readonly string[];
}>;

/** A call of the agent API with the token of a run, about one task. */
type AgentCall = Readonly<{ organizationId: string; taskId: string; token: string; secrets?: readonly string[] }>;

type Call = Readonly<{ signal: AbortSignal; timeoutMs?: number }>;

function encodePath(text: string): string {
  return text.split('/').map(encodeURIComponent).join('/');
}

async function refusal(response: Response): Promise<ApiError> {
  const parsed = errorEnvelope.safeParse(await response.json().catch(() => null));
  if (!parsed.success) return new ApiError(response.status, 'unknown', '', `HTTP ${response.status}`);
  const { error, message } = parsed.data;
  const issue = error.issues?.[0];
  return new ApiError(
    response.status,
    error.code,
    issue?.code ?? '',
    issue ? `${message} (${issue.message})` : message,
  );
}

/** The calls that a worker makes (docs/interface.md 4.13, 4.18 and 4.19). Each throws ApiError, or a network error. */
export function workerApi(options: Readonly<{ url: string; token: string }>) {
  async function send(path: string, init: RequestInit, call: Call): Promise<Response> {
    const signal = AbortSignal.any([call.signal, AbortSignal.timeout(call.timeoutMs ?? REQUEST_TIMEOUT_MS)]);
    const headers = { authorization: `Bearer ${options.token}`, ...init.headers };
    const response = await fetch(`${options.url}${path}`, { ...init, headers, signal });
    if (!response.ok) throw await refusal(response);
    return response;
  }

  async function requestJson<S extends z.ZodType>(path: string, init: RequestInit, schema: S, call: Call) {
    const response = await send(path, init, call);
    const { data, meta } = envelope.parse(await response.json());
    const received: z.output<S> = schema.parse(data);
    return { received, serverTime: Date.parse(meta.timestamp) };
  }

  function post<S extends z.ZodType>(path: string, body: unknown, schema: S, call: Call) {
    const headers = { 'content-type': 'application/json' };
    return requestJson(path, { method: 'POST', headers, body: JSON.stringify(body) }, schema, call);
  }

  const ofRun = (lease: Lease, verb: string) => `/internal/runs/${lease.runId}/${verb}`;
  const fenced = ({ organizationId, leaseToken, secrets = [] }: Lease, rest: object = {}) => ({
    organizationId,
    leaseToken,
    ...redact(rest, secrets),
  });
  const fenceHeaders = ({ organizationId, leaseToken }: Lease) => ({
    'x-organization-id': organizationId,
    'x-lease-token': leaseToken,
  });
  const status = async (lease: Lease, verb: string, body: object, call: Call): Promise<string> =>
    (await post(ofRun(lease, verb), fenced(lease, body), statusSchema, call)).received.status;

  return {
    /** Waits up to `waitMs` for run requests. An item of unknown shape is left to expire. */
    async pull(body: { workerId: string; limit: number; waitMs: number; [filter: string]: unknown }, call: Call) {
      const schema = z.object({ items: z.array(z.unknown()) });
      const timeoutMs = body.waitMs + REQUEST_TIMEOUT_MS;
      const { received, serverTime } = await post('/internal/run-requests/pull', body, schema, { ...call, timeoutMs });
      return received.items.flatMap((item): (Claim | ChatClaim)[] => {
        const { data } = pullItemSchema.safeParse(item);
        return data ? [{ ...data, claimMs: Date.parse(data.leaseExpiresAt) - serverTime }] : [];
      });
    },
    async start(claim: Claim | ChatClaim, runId: string, workerId: string, call: Call) {
      const body = { organizationId: claim.organizationId, leaseToken: claim.leaseToken, runId, workerId };
      const path = `/internal/run-requests/${claim.runRequestId}/start`;
      const { received, serverTime } = await post(path, body, startedSchema, call);
      return { ...received, leaseMs: Date.parse(received.leaseExpiresAt) - serverTime };
    },
    running: (lease: Lease, body: { harness: string; model: string; workspaceUri: string }, call: Call) =>
      status(lease, 'running', body, call),
    /** Waits up to `waitMs` for the cancel of the run. */
    heartbeat: (lease: Lease, call: Call, waitMs = 0) =>
      status(lease, 'heartbeat', waitMs === 0 ? {} : { waitMs }, call),
    logs: (lease: Lease, entries: readonly LogEntry[], call: Call) => status(lease, 'logs', { entries }, call),
    complete: (lease: Lease, body: object, call: Call) => status(lease, 'complete', body, call),
    fail: (lease: Lease, body: object, call: Call) => status(lease, 'fail', body, call),
    /** A task as the agent of a run reads it, with the run's own token. */
    async taskAsAgent({ organizationId, taskId, token }: AgentCall, call: Call) {
      const path = `/internal/agent/organizations/${organizationId}/tasks/${taskId}`;
      const init = { headers: { authorization: `Bearer ${token}` } };
      return (await requestJson(path, init, versionsSchema, call)).received;
    },
    /** Why the last result of a task was refused, a sentence a check. */
    async refusals({ organizationId, task }: Claim, call: Call): Promise<string[]> {
      const path = `/internal/agent/organizations/${organizationId}/tasks/${task.id}`;
      const { state } = (await requestJson(path, {}, refusedSchema, call)).received;
      return (state.contract?.checks ?? []).map(({ summary }) => summary);
    },
    /** What becomes of a task, which the end of its run does not say, and when it is by the server's clock. */
    async explain({ organizationId, task }: Claim, call: Call) {
      const path = `/internal/agent/organizations/${organizationId}/tasks/${task.id}/explain`;
      const { received, serverTime } = await requestJson(path, {}, explanationSchema, call);
      return { ...received, serverTime };
    },
    /** Stages the outcome of the run. A repeat with the same key is the same outcome. */
    async stageOutcome(
      { organizationId, taskId, token, secrets = [] }: AgentCall,
      body: object,
      call: Call,
    ): Promise<void> {
      const path = `/internal/agent/organizations/${organizationId}/tasks/${taskId}/outcomes`;
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
      await requestJson(
        path,
        { method: 'POST', headers, body: JSON.stringify(redact(body, secrets)) },
        z.looseObject({}),
        call,
      );
    },
    async inputs(lease: Lease, call: Call): Promise<Input[]> {
      const schema = z.looseObject({ files: z.array(inputSchema) });
      const { received } = await requestJson(ofRun(lease, 'inputs'), { headers: fenceHeaders(lease) }, schema, call);
      return received.files;
    },
    async inputContent(lease: Lease, path: string, call: Call): Promise<ReadableStream<Uint8Array> | null> {
      const query = new URLSearchParams({ path });
      const init = { headers: fenceHeaders(lease) };
      return (await send(`${ofRun(lease, 'inputs/content')}?${query}`, init, call)).body;
    },
    async conversation(lease: Lease, call: Call): Promise<Conversation> {
      const init = { headers: fenceHeaders(lease) };
      return (await requestJson(ofRun(lease, 'conversation'), init, conversationSchema, call)).received;
    },
    /** Appends text to the reply. A repeat with the same `baseRevision` is the same write. */
    async appendToMessage(lease: Lease, baseRevision: number, append: string, call: Call) {
      const body = fenced(lease, { baseRevision, append });
      return (await post(ofRun(lease, 'message'), body, writtenSchema, call)).received;
    },
    async attachmentContent(lease: Lease, id: string, call: Call): Promise<ReadableStream<Uint8Array> | null> {
      const init = { headers: fenceHeaders(lease) };
      return (await send(`${ofRun(lease, 'attachments')}/${id}/content`, init, call)).body;
    },
    /** Streams a file from the disk: the blob of a file is read while it is sent, and can be sent again. */
    async putOutput(lease: Lease, path: string, file: string, call: Call): Promise<void> {
      const body = await openAsBlob(file, { type: 'application/octet-stream' }).catch(() => {
        throw new UnreadableFileError('it cannot be read');
      });
      const init = { method: 'PUT', headers: fenceHeaders(lease), body };
      const response = await send(`${ofRun(lease, 'outputs')}/${encodePath(path)}`, init, call);
      await response.body?.cancel();
    },
  };
}

export type WorkerApi = ReturnType<typeof workerApi>;
