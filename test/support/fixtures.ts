import { createHash, randomUUID } from 'node:crypto';
import { z } from 'zod';
import { type Answer, type Connection, type Sql, transition } from './transitions.ts';

/** An organization with one profile: where most tests work. */
export type Place = Readonly<{ organizationId: string; profileId: string; profileKey: string }>;

export const OWNER = { kind: 'owner' } as const;
export const SERVICE = { kind: 'service' } as const;

/** The actor behind an execution token. */
export function capability(executionToken: string) {
  return { kind: 'capability', tokenHash: sha256(executionToken) } as const;
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

export async function createOrganization(
  sql: Sql,
  fields: Readonly<{ limits?: Record<string, number>; status?: string; slug?: string }> = {},
): Promise<string> {
  const organizationId = randomUUID();
  await transition(sql.api, 'organization_create', {
    p_organization_id: organizationId,
    p_fields: {
      slug: fields.slug ?? `o-${organizationId}`,
      name: 'Test',
      status: fields.status ?? 'active',
      config: { limits: fields.limits ?? {} },
    },
    p_subject: null,
  });
  return organizationId;
}

export type ProfileFields = Readonly<{
  key?: string;
  kind?: string;
  department?: string | null;
  status?: string;
  maxConcurrentRuns?: number;
}>;

const profileAnswer = z.object({ agent_profile: z.object({ id: z.string(), key: z.string() }) });

export async function createProfile(
  sql: Sql,
  organizationId: string,
  fields: ProfileFields = {},
): Promise<{ id: string; key: string }> {
  const kind = fields.kind ?? 'operator';
  const answer = await transition(sql.api, 'agent_profile_create', {
    p_organization_id: organizationId,
    p_fields: {
      key: fields.key ?? `p-${randomUUID().slice(0, 8)}`,
      name: 'Profile',
      kind,
      department: kind === 'department' ? (fields.department ?? 'growth') : null,
      status: fields.status ?? 'enabled',
      config: fields.maxConcurrentRuns === undefined ? {} : { maxConcurrentRuns: fields.maxConcurrentRuns },
    },
  });
  return profileAnswer.parse(answer).agent_profile;
}

export async function createPlace(
  sql: Sql,
  fields: ProfileFields & Readonly<{ limits?: Record<string, number> }> = {},
): Promise<Place> {
  const { limits, ...profile } = fields;
  const organizationId = await createOrganization(sql, limits ? { limits } : {});
  const { id, key } = await createProfile(sql, organizationId, profile);
  return { organizationId, profileId: id, profileKey: key };
}

/** Another profile of the same organization. */
export async function createSecondProfile(sql: Sql, place: Place, fields: ProfileFields = {}): Promise<Place> {
  const { id, key } = await createProfile(sql, place.organizationId, fields);
  return { organizationId: place.organizationId, profileId: id, profileKey: key };
}

const taskSchema = z.looseObject({
  id: z.string(),
  status: z.string(),
  phase: z.string(),
  version: z.number(),
  identifier_scope: z.string(),
  identifier_number: z.number(),
  blockers: z.array(z.looseObject({ kind: z.string() })),
});
export type Task = z.output<typeof taskSchema>;
export const taskAnswer = z.looseObject({ task: taskSchema });

export function taskCreate(connection: Connection, place: Place, fields: Answer = {}, actor: Answer = OWNER) {
  const owner = 'ownerProfileKey' in fields ? {} : { ownerAgentProfileId: place.profileId };
  return transition(connection, 'task_create', {
    p_organization_id: place.organizationId,
    p_task: { title: 'A task', ...owner, ...fields },
    p_actor: actor,
  });
}

export async function createTask(sql: Sql, place: Place, fields: Answer = {}, actor: Answer = OWNER): Promise<Task> {
  return taskAnswer.parse(await taskCreate(sql.api, place, fields, actor)).task;
}

/** An initiative with one task below it for every name, by that name. */
export async function createInitiative<N extends string>(
  sql: Sql,
  place: Place,
  names: readonly N[],
  fields: Answer = {},
): Promise<{ root: string } & Record<N, string>> {
  const root = (await createTask(sql, place, { kind: 'initiative', title: 'An initiative', ...fields })).id;
  const made: Record<string, string> = { root };
  for (const name of names) made[name] = (await createTask(sql, place, { parentId: root, title: name })).id;
  return made as { root: string } & Record<N, string>;
}

export async function taskRow(sql: Sql, place: Place, id: string): Promise<Task> {
  const { rows } = await sql.owner.query('select * from app.tasks where organization_id = $1 and id = $2', [
    place.organizationId,
    id,
  ]);
  return taskSchema.parse(rows[0]);
}

/** Each task's status, by the names of an initiative. */
export async function statuses(sql: Sql, place: Place, ids: Readonly<Record<string, string>>) {
  const found: Record<string, string> = {};
  for (const [name, id] of Object.entries(ids)) found[name] = (await taskRow(sql, place, id)).status;
  return found;
}

const requestSchema = z.looseObject({
  id: z.string(),
  state: z.string(),
  attempt: z.number(),
  fence: z.coerce.number(),
  parked: z.boolean(),
  due_at: z.date(),
});
export type RequestRow = z.output<typeof requestSchema>;

/** All requests that a task ever had, oldest first. */
export async function requestRows(sql: Sql, place: Place, taskId: string): Promise<RequestRow[]> {
  const { rows } = await sql.owner.query(
    'select * from app.run_requests where organization_id = $1 and task_id = $2 order by created_at, id',
    [place.organizationId, taskId],
  );
  return z.array(requestSchema).parse(rows);
}

export async function lastRequest(sql: Sql, place: Place, taskId: string): Promise<RequestRow> {
  const found = (await requestRows(sql, place, taskId)).at(-1);
  if (!found) throw new Error('the task has no run request');
  return found;
}

/** The open items of the inbox that are about a task. */
export async function openItems(sql: Sql, place: Place, taskId: string): Promise<Answer[]> {
  const { rows } = await sql.owner.query(
    `select * from app.human_inbox_items
     where organization_id = $1 and task_id = $2 and status = 'open' order by created_at, id`,
    [place.organizationId, taskId],
  );
  return rows;
}

const claimSchema = z.looseObject({
  organizationId: z.string(),
  runRequestId: z.string(),
  leaseToken: z.string(),
  attempt: z.number(),
  priority: z.number(),
  task: z.looseObject({ id: z.string(), title: z.string(), spec: z.looseObject({}) }),
});
export type Claim = z.output<typeof claimSchema>;

export type PullFields = Readonly<{
  limit?: number;
  workerId?: string;
  organizationIds?: readonly string[] | null;
  profileKeys?: readonly string[];
  kinds?: readonly string[];
  claimSeconds?: number;
}>;

export async function pull(connection: Connection, fields: PullFields): Promise<Claim[]> {
  const answer = await transition(connection, 'run_requests_pull', {
    p_worker_ids: Array.from({ length: fields.limit ?? 1 }, () => fields.workerId ?? 'worker'),
    p_organization_ids: fields.organizationIds ?? null,
    p_profile_keys: fields.profileKeys ?? null,
    p_kinds: fields.kinds ?? null,
    p_claim_seconds: fields.claimSeconds ?? 30,
  });
  return z.object({ items: z.array(claimSchema) }).parse(answer).items;
}

/** The next request of the organization, which has to have one. */
export async function claimNext(sql: Sql, place: Place, workerId = 'worker'): Promise<Claim> {
  const [claim] = await pull(sql.api, { organizationIds: [place.organizationId], workerId });
  if (!claim) throw new Error('nothing to pull');
  return claim;
}

const startedSchema = z.object({
  organizationId: z.string(),
  taskId: z.string(),
  runRequestId: z.string(),
  runId: z.string(),
  attempt: z.number(),
  leaseExpiresAt: z.string(),
  executionToken: z.string(),
});
export type Run = z.output<typeof startedSchema> & Readonly<{ leaseToken: string }>;

export type StartFields = Readonly<{ runId?: string; workerId?: string; leaseSeconds?: number }>;

export async function startRun(
  connection: Connection,
  claim: Pick<Claim, 'organizationId' | 'runRequestId' | 'leaseToken'>,
  fields: StartFields = {},
): Promise<Run> {
  const answer = await transition(connection, 'run_start', {
    p_organization_id: claim.organizationId,
    p_run_request_id: claim.runRequestId,
    p_run_id: fields.runId ?? randomUUID(),
    p_lease_token: claim.leaseToken,
    p_worker_id: fields.workerId ?? 'worker',
    p_lease_seconds: fields.leaseSeconds ?? 60,
  });
  return { ...startedSchema.parse(answer), leaseToken: claim.leaseToken };
}

/** Claims and starts what comes next in the organization. */
export async function runNext(sql: Sql, place: Place, fields: StartFields = {}): Promise<Run> {
  return startRun(sql.api, await claimNext(sql, place, fields.workerId), fields);
}

/** A new task, claimed and started. */
export async function runNew(sql: Sql, place: Place, fields: Answer = {}): Promise<Run> {
  const task = await createTask(sql, place, { priority: 1_000_000, ...fields });
  const run = await runNext(sql, place);
  if (run.taskId !== task.id) throw new Error('another task came first');
  return run;
}

type Held = Pick<Run, 'organizationId' | 'runId' | 'leaseToken'>;

function held(run: Held) {
  return { p_organization_id: run.organizationId, p_run_id: run.runId, p_lease_token: run.leaseToken };
}

export type CompleteFields = Readonly<{
  result?: Answer;
  report?: Answer;
  checks?: readonly Answer[] | null;
  judged?: string | null;
  bodyHash?: string;
}>;

export function completeRun(connection: Connection, run: Held, fields: CompleteFields = {}): Promise<Answer> {
  return transition(connection, 'run_complete', {
    ...held(run),
    p_body_hash: fields.bodyHash ?? 'a',
    p_result: fields.result ?? { kind: 'completed', summary: 'Done', artifacts: [] },
    p_report: fields.report ?? {},
    p_checks: fields.checks ? JSON.stringify(fields.checks) : null,
    p_judged: fields.judged ?? null,
  });
}

export type FailFields = Readonly<{
  retryable?: boolean;
  code?: string;
  report?: Answer;
  bodyHash?: string;
  maxAttempts?: number;
  backoffSeconds?: number;
  backoffMaxSeconds?: number;
}>;

export function failRun(connection: Connection, run: Held, fields: FailFields = {}): Promise<Answer> {
  return transition(connection, 'run_fail', {
    ...held(run),
    p_body_hash: fields.bodyHash ?? 'f',
    p_error: { code: fields.code ?? 'broken', message: 'It broke', retryable: fields.retryable ?? false },
    p_report: fields.report ?? {},
    p_max_attempts: fields.maxAttempts ?? 3,
    p_backoff_seconds: fields.backoffSeconds ?? 10,
    p_backoff_max_seconds: fields.backoffMaxSeconds ?? 300,
  });
}

export function heartbeat(connection: Connection, run: Held, leaseSeconds = 60): Promise<Answer> {
  return transition(connection, 'run_heartbeat', { ...held(run), p_lease_seconds: leaseSeconds });
}

export function markRunning(connection: Connection, run: Held, model = 'm'): Promise<Answer> {
  return transition(connection, 'run_running', {
    ...held(run),
    p_harness: 'h',
    p_model: model,
    p_workspace_uri: null,
  });
}

export function logEntry(sequence: number, label = `entry ${sequence}`) {
  return {
    sequence,
    category: 'execution',
    status: 'completed',
    label,
    detail: '',
    occurredAt: '2026-01-01T00:00:00.000Z',
  };
}

export function appendLogs(connection: Connection, run: Held, entries: readonly Answer[]): Promise<Answer> {
  return transition(connection, 'run_logs_append', { ...held(run), p_entries: JSON.stringify(entries) });
}

export function recordOutput(
  connection: Connection,
  run: Held,
  path: string,
  storageKey: string | null = `key/${randomUUID()}`,
): Promise<Answer> {
  return transition(connection, 'run_output_record', {
    ...held(run),
    p_path: path,
    p_storage_key: storageKey,
    p_size: 3,
    p_sha256: sha256(path),
    p_media_type: 'text/plain',
  });
}

export function checkLease(connection: Connection, run: Held): Promise<Answer> {
  return transition(connection, 'run_lease_check', held(run));
}

export function releaseClaim(
  connection: Connection,
  claim: Pick<Claim, 'organizationId' | 'runRequestId' | 'leaseToken'>,
) {
  return transition(connection, 'run_request_release', {
    p_organization_id: claim.organizationId,
    p_run_request_id: claim.runRequestId,
    p_lease_token: claim.leaseToken,
  });
}

/** Lets the lease of a claim or a run end now; nothing has noticed yet. */
export async function endLease(
  sql: Sql,
  held: Readonly<{ organizationId: string; runRequestId: string }>,
): Promise<void> {
  await sql.owner.query(
    `update app.run_requests set lease_expires_at = clock_timestamp() - interval '1 millisecond'
     where organization_id = $1 and id = $2 and state in ('leased', 'started')`,
    [held.organizationId, held.runRequestId],
  );
}

export type ExpireFields = Readonly<{ maxAttempts?: number; backoffSeconds?: number; backoffMaxSeconds?: number }>;

/** What the dispatch job does with a lease that has ended. */
export async function expire(
  jobs: Connection,
  held: Readonly<{ organizationId: string; runRequestId: string }>,
  fields: ExpireFields = {},
): Promise<unknown> {
  const answer = await transition(jobs, 'run_request_expire', {
    p_organization_id: held.organizationId,
    p_run_request_id: held.runRequestId,
    p_max_attempts: fields.maxAttempts ?? 3,
    p_backoff_seconds: fields.backoffSeconds ?? 1,
    p_backoff_max_seconds: fields.backoffMaxSeconds ?? 300,
  });
  return answer['outcome'];
}

/** Makes a queued request of a task due now. */
export async function makeDue(sql: Sql, place: Place, taskId: string): Promise<void> {
  await sql.owner.query(
    `update app.run_requests set due_at = clock_timestamp() where organization_id = $1 and task_id = $2 and state = 'queued'`,
    [place.organizationId, taskId],
  );
}

export function publish(connection: Connection, place: Place, requestIds: readonly string[]): Promise<Answer> {
  return transition(connection, 'run_requests_publish', {
    p_organization_id: place.organizationId,
    p_run_request_ids: requestIds,
  });
}

/** All that time has made due, moved as the dispatch job moves it, until nothing is due. */
export async function dispatchAll(sql: Sql): Promise<void> {
  const due = z.array(z.object({ sort: z.string(), organization_id: z.string(), ids: z.array(z.string()) }));
  for (let round = 0; round < 20; round += 1) {
    const { rows } = await sql.jobs.query('select * from app.dispatch_due(100)');
    const found = due.parse(rows);
    if (found.length === 0) return;
    for (const { sort, organization_id: organizationId, ids } of found) {
      const place = { organizationId, profileId: '', profileKey: '' };
      if (sort === 'publish') await publish(sql.jobs, place, ids);
      else if (sort === 'wake') {
        await transition(sql.jobs, 'tasks_wake', { p_organization_id: organizationId, p_task_ids: ids });
      } else for (const id of ids) await expire(sql.jobs, { organizationId, runRequestId: id });
    }
  }
  throw new Error('the dispatch never comes to an end');
}

/** A request that waits for its backoff is published now. */
export async function publishNow(sql: Sql, place: Place, taskId: string): Promise<void> {
  await makeDue(sql, place, taskId);
  await publish(sql.jobs, place, [(await lastRequest(sql, place, taskId)).id]);
}

export function updateTask(
  connection: Connection,
  place: Place,
  ref: string,
  expectedVersion: number,
  patch: Answer,
  actor: Answer = OWNER,
): Promise<Answer> {
  return transition(connection, 'task_update', {
    p_organization_id: place.organizationId,
    p_task_ref: ref,
    p_expected_version: expectedVersion,
    p_patch: patch,
    p_actor: actor,
  });
}

/** A patch against whatever version the task has now. */
export async function patchTask(sql: Sql, place: Place, id: string, patch: Answer): Promise<Task> {
  const { version } = await taskRow(sql, place, id);
  return taskAnswer.parse(await updateTask(sql.api, place, id, version, patch)).task;
}

export function cancelTask(connection: Connection, place: Place, ref: string, actor: Answer = OWNER): Promise<Answer> {
  return transition(connection, 'task_cancel', {
    p_organization_id: place.organizationId,
    p_task_ref: ref,
    p_actor: actor,
  });
}

export function retryTask(connection: Connection, place: Place, ref: string, actor: Answer = OWNER): Promise<Answer> {
  return transition(connection, 'task_retry', {
    p_organization_id: place.organizationId,
    p_task_ref: ref,
    p_actor: actor,
  });
}

export function addDependency(
  connection: Connection,
  place: Place,
  ref: string,
  dependsOn: string,
  fields: Readonly<{ required?: boolean; actor?: Answer }> = {},
): Promise<Answer> {
  return transition(connection, 'task_dependency_create', {
    p_organization_id: place.organizationId,
    p_task_ref: ref,
    p_depends_on: dependsOn,
    p_required: fields.required ?? true,
    p_actor: fields.actor ?? OWNER,
  });
}

export function setWorkDispatch(connection: Connection, place: Place, stopped: boolean, actor: Answer = OWNER) {
  return transition(connection, 'work_dispatch_set', {
    p_organization_id: place.organizationId,
    p_stopped: stopped,
    p_actor: actor,
  });
}

export function updateOrganization(
  connection: Connection,
  place: Pick<Place, 'organizationId'>,
  patch: Answer,
  platform = true,
) {
  return transition(connection, 'organization_update', {
    p_organization_id: place.organizationId,
    p_patch: patch,
    p_platform: platform,
  });
}

export function updateProfile(connection: Connection, place: Place, patch: Answer) {
  return transition(connection, 'agent_profile_update', {
    p_organization_id: place.organizationId,
    p_agent_profile_id: place.profileId,
    p_patch: patch,
  });
}
