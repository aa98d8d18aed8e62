import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { Task } from '../../api/tasks/schema.ts';
import { organizationPrefix } from '../../engine/storage/index.ts';
import type { TestApp } from './app.ts';
import type { TestOrganization } from './fixtures.ts';
import type { Client, Reply } from './http.ts';
import type { Sql } from './transitions.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** The app's database for the fixtures that work by SQL: what HTTP does not offer, and what only time does. */
export function sqlOf(app: TestApp): Sql {
  const { url, owner } = app.database;
  return { url, owner, api: owner, jobs: owner, admin: owner };
}

/** A path of the owner's endpoints. */
export function ownerPath(org: Pick<TestOrganization, 'organizationId'>, rest = ''): string {
  return `/organizations/${org.organizationId}${rest}`;
}

/** A path of the agent's endpoints. */
export function agentPath(org: Pick<TestOrganization, 'organizationId'>, rest = ''): string {
  return `/internal/agent/organizations/${org.organizationId}${rest}`;
}

/** A mark that differs after any row was written: by the ids of the transactions that wrote the rows. */
export async function fingerprint(app: TestApp): Promise<string> {
  const work = ['tasks', 'run_requests', 'runs', 'run_outputs', 'run_logs', 'task_inputs', 'task_dependencies'];
  const tables = [...work, 'human_inbox_items', 'schedules'];
  const counts = tables.map(
    (table) => `(select coalesce(sum(xmin::text::bigint), 0) || ':' || count(*) from app.${table})`,
  );
  const { rows } = await app.database.owner.query<{ mark: string }>(
    `select concat_ws(' ', ${counts.join(', ')}) as mark`,
  );
  return rows[0]?.mark ?? '';
}

/** The keys of all that is stored for the organization. */
export async function storedKeys(app: TestApp, org: Pick<TestOrganization, 'organizationId'>): Promise<string[]> {
  const { objects } = await app.services.storage.list(organizationPrefix(org.organizationId));
  return objects.map((object) => object.key);
}

/** Throws unless the call succeeded. */
export function expectSuccess<T>(reply: Reply<T>, status = 200): T {
  if (reply.status !== status) throw new Error(`expected ${status}: ${JSON.stringify(reply.body)}`);
  return reply.data;
}

/** A refusal in three words: status, `error.code`, and the code of its first issue where there is one. */
export function refusalOf(reply: Reply<unknown>): string {
  if (reply.status < 400) throw new Error(`expected a refusal: ${JSON.stringify(reply.body)}`);
  const issue = reply.body.error.issues?.[0]?.code;
  return [reply.status, reply.code, issue].filter((part) => part !== undefined).join(' ');
}

/** Of a spec: what cannot lie beside each other in one folder. */
export const UNDER_EACH_OTHER = {
  inputs: [
    { kind: 'upload', path: 'a' },
    { kind: 'upload', path: 'A/b' },
  ],
};
export const IN_ONE_PLACE = {
  acceptanceCriteria: [
    { kind: 'output_file', path: 'Report.md' },
    { kind: 'output_file', path: 'report.md' },
  ],
};

export async function makeTask(app: TestApp, org: TestOrganization, fields: Fields = {}): Promise<Task> {
  const owner =
    'ownerProfileKey' in fields || 'ownerAgentProfileId' in fields ? {} : { ownerProfileKey: org.profileKey };
  return expectSuccess(
    await app.owner.post<Task>(ownerPath(org, '/tasks'), { title: 'A task', ...owner, ...fields }),
    201,
  );
}

export async function readTask(app: TestApp, org: TestOrganization, ref: string): Promise<Task> {
  return expectSuccess(await app.owner.get<Task>(ownerPath(org, `/tasks/${ref}`)));
}

export type PulledItem = Readonly<{
  organizationId: string;
  runRequestId: string;
  leaseToken: string;
  attempt: number;
  priority: number;
  leaseExpiresAt: string;
  agentProfile: { id: string; key: string };
  task: Task;
}>;

export const PULL = '/internal/run-requests/pull';

/** What a worker gets that asks for work of these organizations. */
export async function pullItems(app: TestApp, fields: Fields): Promise<readonly PulledItem[]> {
  const reply = await app.service.post<{ items: PulledItem[] }>(PULL, { workerId: 'worker', ...fields });
  return expectSuccess(reply).items;
}

/** The next request of the organization, which has to have one. */
export async function claim(app: TestApp, org: Pick<TestOrganization, 'organizationId'>): Promise<PulledItem> {
  // What was refused a moment ago may still be locked, and a pull skips that.
  const [item] = await pullItems(app, { organizationIds: [org.organizationId], waitMs: 10_000 });
  if (!item) throw new Error('nothing to pull');
  return item;
}

type Started = Readonly<{
  organizationId: string;
  taskId: string;
  runRequestId: string;
  runId: string;
  attempt: number;
  executionToken: string;
}>;

/** A run that holds its lease. */
export type HeldRun = Started & Readonly<{ leaseToken: string }>;

/** The body of a start. */
export function startOf(item: PulledItem, runId: string = randomUUID()) {
  const { organizationId, leaseToken } = item;
  return { organizationId, leaseToken, runId, workerId: 'worker' };
}

export async function startRun(app: TestApp, item: PulledItem, runId?: string): Promise<HeldRun> {
  const path = `/internal/run-requests/${item.runRequestId}/start`;
  const started = expectSuccess(await app.service.post<Started>(path, startOf(item, runId)));
  return { ...started, leaseToken: item.leaseToken };
}

/** Claims and starts what comes next in the organization. */
export async function runNext(app: TestApp, org: Pick<TestOrganization, 'organizationId'>): Promise<HeldRun> {
  return startRun(app, await claim(app, org));
}

/** A new task of the place's profile, claimed and started. */
export async function runTask(app: TestApp, org: TestOrganization, fields: Fields = {}): Promise<HeldRun> {
  const task = await makeTask(app, org, { priority: 1000, ...fields });
  const run = await runNext(app, org);
  if (run.taskId !== task.id) throw new Error('another task came first');
  return run;
}

export const COMPLETED = { kind: 'completed', summary: 'Done', artifacts: [] };

type Status = { status: string };

/** The calls of one worker about one run; `client` to make them with other credentials. */
export function workerOf(app: TestApp, run: Pick<HeldRun, 'organizationId' | 'runId' | 'leaseToken'>, client?: Client) {
  const { organizationId, runId, leaseToken } = run;
  const service = client ?? app.service;
  const post = (call: string, fields: Fields = {}) =>
    service.post<Status>(`/internal/runs/${runId}/${call}`, { organizationId, leaseToken, ...fields });
  const headers = { 'x-organization-id': organizationId, 'x-lease-token': leaseToken };
  const outputPath = (path: string) => `/internal/runs/${runId}/outputs/${path}`;
  const inputsPath = `/internal/runs/${runId}/inputs`;
  return {
    headers,
    outputPath,
    inputsPath,
    post,
    running: (fields: Fields = {}) => post('running', { harness: 'h', model: 'm', ...fields }),
    heartbeat: () => post('heartbeat'),
    logs: (entries: readonly Fields[]) => post('logs', { entries }),
    complete: (result: Fields = COMPLETED, fields: Fields = {}) =>
      post('complete', { output: { kind: 'task_result', result }, ...fields }),
    /** Completes with these stored outputs as artifacts. */
    completeWith: (...paths: string[]) =>
      post('complete', {
        output: { kind: 'task_result', result: { ...COMPLETED, artifacts: paths.map((path) => ({ path })) } },
      }),
    fail: (fields: Fields = {}, report: Fields = {}) =>
      post('fail', { error: { code: 'broken', message: 'It broke', retryable: false, ...fields }, ...report }),
    put: (path: string, bytes: string | Uint8Array, more: Readonly<Record<string, string>> = {}) =>
      service.put<{ path: string; mediaType: string; sizeBytes: number; sha256: string }>(outputPath(path), bytes, {
        headers: { ...headers, ...more },
      }),
    inputs: () => service.get<{ version: number; files: Fields[] }>(inputsPath, { headers }),
    input: (path: string) => service.fetch(`${inputsPath}/content?${new URLSearchParams({ path })}`, { headers }),
  };
}

export type RawResponse = Readonly<{ status: number; headers: IncomingHttpHeaders; body: Buffer }>;

type RawRequest = Readonly<{
  method?: string;
  /** As it stands: no client resolves `..` or encodes anything. */
  path: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Uint8Array;
}>;

/** A request exactly as written. */
export async function rawRequest(url: string, given: RawRequest): Promise<RawResponse> {
  const { hostname, port } = new URL(url);
  const { method = 'GET', path, headers = {}, body } = given;
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  const sent = request({ hostname, port, method, path, headers: { ...length, ...headers } });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, headers: response.headers, body: await buffer(response) };
}

/** `error.code` of a raw response that has to be an envelope. */
export function rawCode(response: RawResponse): string {
  const parsed = JSON.parse(response.body.toString('utf8')) as { success: boolean; error: { code: string } };
  if (parsed.success) throw new Error('expected a refusal');
  return parsed.error.code;
}
