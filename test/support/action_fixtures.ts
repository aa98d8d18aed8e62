// Actions as tests work with them: proposed by the gateway capability of a run, with the rights of the API.
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { functionText } from '../../engine/db/function_text.ts';
import {
  createTestOrganization,
  endLease,
  type Run,
  runNew,
  sha256,
  type TestOrganization,
  updateOrganization,
} from './fixtures.ts';
import { allow, createConnected, type IntegrationRow, resolveGateway } from './integration_fixtures.ts';
import { type Connection, type JsonObject, type Sql, transition } from './transitions.ts';

const actionSchema = z.looseObject({
  id: z.string(),
  task_id: z.string().nullable(),
  status: z.string(),
  version: z.int(),
  requires_approval: z.boolean(),
  risk: z.string(),
  arguments_sha256: z.string(),
  reason: z.looseObject({ code: z.string() }).nullable(),
});
export type ActionRow = z.output<typeof actionSchema>;

export function actionOf(result: JsonObject): ActionRow {
  return z.looseObject({ action: actionSchema }).parse(result).action;
}

/** An execution that may propose, with its capability for an integration. */
export type Proposer = Readonly<{
  org: TestOrganization;
  integration: IntegrationRow;
  run: Pick<Run, 'runId'>;
  token: string;
}>;

/** Another capability, as one needs after a change of what agents may do. */
export async function grantGateway(
  sql: Pick<Sql, 'api' | 'owner'>,
  org: TestOrganization,
  integration: IntegrationRow,
  run: Pick<Run, 'runId'>,
  kind = 'cli',
): Promise<Proposer> {
  const token = randomUUID();
  await resolveGateway(sql, org, integration.id, { token, runId: run.runId, kind });
  return { org, integration, run, token };
}

/** The same execution, with a capability for what agents may do now. */
export function renewed(sql: Pick<Sql, 'api' | 'owner'>, by: Proposer): Promise<Proposer> {
  return grantGateway(sql, by.org, by.integration, by.run);
}

/** A profile that may propose, in an organization with an integration that writes. patch: of the organization. */
export async function createActing(sql: Sql, patch?: JsonObject, org?: TestOrganization) {
  const acting = org ?? (await createTestOrganization(sql));
  if (patch) await updateOrganization(sql.api, acting, patch);
  await allow(sql, acting, 'integrations.read', 'integrations.propose', 'git.read', 'git.propose');
  return { org: acting, integration: await createConnected(sql, acting) };
}

/** An organization whose profile may push. */
export function createEngineering(sql: Sql): Promise<TestOrganization> {
  return createTestOrganization(sql, { kind: 'department', department: 'engineering' });
}

/** A task that runs, whose run may propose. */
export async function createProposer(
  sql: Sql,
  patch?: JsonObject,
  of?: TestOrganization,
): Promise<Proposer & Readonly<{ run: Run }>> {
  const { org, integration } = await createActing(sql, patch, of);
  const run = await runNew(sql, org);
  return { ...(await grantGateway(sql, org, integration, run)), run };
}

/** Another task of the same organization that runs. */
export async function createSibling(
  sql: Sql,
  { org, integration }: Proposer,
): Promise<Proposer & Readonly<{ run: Run }>> {
  const run = await runNew(sql, org);
  return { ...(await grantGateway(sql, org, integration, run)), run };
}

export function proposal(fields: JsonObject = {}) {
  const { arguments: given = { amount: 1 }, ...rest } = fields;
  const text = JSON.stringify(given);
  return {
    invocationId: randomUUID(),
    bodySha256: sha256(`${text} ${JSON.stringify(rest)}`),
    tool: 'items.create',
    summary: `Create ${text}`,
    arguments: given,
    argumentsSha256: sha256(text),
    files: [],
    timeoutMs: 60_000,
    ...rest,
  };
}

export function actionFile(argument: string, text = argument) {
  return {
    argument,
    name: `${argument}.txt`,
    contentType: 'text/plain',
    sizeBytes: text.length,
    sha256: sha256(text),
    storageKey: `files/${sha256(text)}`,
  };
}

export type ProposeFields = JsonObject & Readonly<{ gateway?: string; approvalDays?: number }>;

export function proposeAction(connection: Connection, by: Proposer, fields: ProposeFields = {}): Promise<JsonObject> {
  const { gateway = 'cli', approvalDays = 7, ...rest } = fields;
  return transition(connection, 'action_propose', {
    organizationId: by.org.organizationId,
    tokenHash: sha256(by.token),
    integrationId: by.integration.id,
    kind: gateway,
    proposal: proposal(rest),
    approvalDays,
  });
}

export async function propose(sql: Pick<Sql, 'api'>, by: Proposer, fields: ProposeFields = {}): Promise<ActionRow> {
  return actionOf(await proposeAction(sql.api, by, fields));
}

/** A row in every table of actions, proposed by an active run. */
export async function createActionRows(sql: Sql, org: TestOrganization, run: Pick<Run, 'runId'>): Promise<void> {
  const { integration } = await createActing(sql, undefined, org);
  const by = await grantGateway(sql, org, integration, run);
  await propose(sql, by, { files: [actionFile('body')] });
  await invocationFiles(sql.api, by, 'other').begin(randomUUID());
}

export function declaredFile(text: string, fields: JsonObject = {}) {
  return { name: 'note.txt', contentType: 'text/plain', sizeBytes: text.length, sha256: sha256(text), ...fields };
}

/** The calls about files of one invocation. */
export function invocationFiles(connection: Connection, by: Proposer, invocationId: string) {
  const at = {
    organizationId: by.org.organizationId,
    tokenHash: sha256(by.token),
    integrationId: by.integration.id,
    invocationId,
  };
  const store = (begun: boolean) => (fileId: string, file: JsonObject | null, storageKey: string | null) =>
    transition(connection, 'action_file_store', { ...at, fileId, begun, file, storageKey });
  return {
    begin: (fileId: string, file: JsonObject = declaredFile('note'), uploadKey = `uploads/${randomUUID()}`) =>
      transition(connection, 'action_file_begin', { ...at, fileId, file, uploadKey, seconds: 900 }),
    put: store(false),
    complete: store(true),
    find: (...fileIds: readonly string[]) => transition(connection, 'action_files_find', { ...at, fileIds }),
  };
}

export const DECIDER = { kind: 'owner', by: 'ada' };

type Place = Pick<TestOrganization, 'organizationId'>;
export type DecideFields = Readonly<{
  expectedVersion?: number | null;
  argumentsSha256?: string | null;
  note?: string | null;
  actor?: JsonObject;
}>;

export function approve(
  connection: Connection,
  { organizationId }: Place,
  actionId: string,
  fields: DecideFields = {},
) {
  const { expectedVersion = null, argumentsSha256 = null, note = null, actor = DECIDER } = fields;
  const decision = { expectedVersion, argumentsSha256, note, actor };
  return transition(connection, 'action_approve', { organizationId, actionId, ...decision });
}

export function reject(
  connection: Connection,
  { organizationId }: Place,
  actionId: string,
  fields: Readonly<{ reason?: string; actor?: JsonObject }> = {},
) {
  const { reason = 'No', actor = DECIDER } = fields;
  return transition(connection, 'action_reject', { organizationId, actionId, reason, actor });
}

/** An action of which nobody knows what became of it. fields: of its proposal. */
export async function makeUnknown(sql: Sql, by: Proposer, fields: ProposeFields = {}): Promise<ActionRow> {
  const proposed = await propose(sql, by, fields);
  if (proposed.status === 'awaiting_approval') await approve(sql.api, by.org, proposed.id);
  const job = jobOf(sql.jobs, by.org, proposed.id);
  await job.lease();
  await job.begin();
  await passTime(sql, proposed.id);
  const other = jobOf(sql.jobs, by.org, proposed.id);
  await other.lease();
  await sql.owner.query('update app.actions set look_up_until = now() where id = $1', [proposed.id]);
  return actionOf(await other.finish('none'));
}

/** As it is stored. */
export async function actionRow(sql: Pick<Sql, 'owner'>, id: string): Promise<ActionRow> {
  const { rows } = await sql.owner.query('select to_jsonb(a) as action from app.actions a where id = $1', [id]);
  return actionOf(rows[0]);
}

/** Its items in the inbox, oldest first. */
export async function itemsOf(sql: Pick<Sql, 'owner'>, actionId: string): Promise<JsonObject[]> {
  const { rows } = await sql.owner.query(
    'select kind, purpose, status, title, task_id, chat_id from app.human_inbox_items where action_id = $1 order by id',
    [actionId],
  );
  return rows;
}

/** Its time to be decided about is over. */
export async function makeOverdue(sql: Pick<Sql, 'owner'>, actionId: string): Promise<void> {
  await sql.owner.query(`update app.actions set expires_at = now() - interval '1 second' where id = $1`, [actionId]);
}

const DUE = functionText('dispatch_due', {});
const DUE_KINDS = { execute: 'action', expire: 'action_expire' } as const;

/** What of an organization's actions a job finds due. */
export async function dueActions(sql: Pick<Sql, 'jobs'>, org: Place, kind: keyof typeof DUE_KINDS): Promise<string[]> {
  const { rows } = await sql.jobs.query(`select ids from ${DUE} where kind = $1 and organization_id = $2`, [
    DUE_KINDS[kind],
    org.organizationId,
  ]);
  return rows[0]?.ids ?? [];
}

/** A job's calls about an action. */
export function jobOf(
  connection: Connection,
  { organizationId }: Place,
  actionId: string,
  leaseId: string = randomUUID(),
) {
  const at = { organizationId, actionId, leaseId };
  return {
    leaseId,
    lease: (seconds = 60) =>
      transition(connection, 'action_lease', {
        ...at,
        seconds,
        pushSeconds: seconds,
        lookUpSeconds: 300,
        approvalDays: 7,
        fileBytesPerSecond: 1_000,
      }),
    begin: (files: readonly JsonObject[] = [], seconds = 90) =>
      transition(connection, 'action_begin', { ...at, seconds, files, approvalDays: 7 }),
    finish: (outcome: string, fields: JsonObject = {}) =>
      transition(connection, 'action_finish', { ...at, outcome: { outcome, ...fields } }),
    release: (seconds = 30) => transition(connection, 'action_release', { ...at, seconds }),
  };
}

/** As if so much time had passed: its lease is over, and it is due. */
export async function passTime(sql: Pick<Sql, 'owner'>, actionId: string): Promise<void> {
  await sql.owner.query(
    `update app.actions set due_at = now() - interval '1 second',
       lease_expires_at = case when lease_expires_at is not null then now() - interval '1 second' end
     where id = $1 and due_at is not null`,
    [actionId],
  );
}

/** Ends a run, as if it had ended so long ago, and lets its files be looked at. */
export async function endedAgo(
  sql: Sql,
  by: Pick<Proposer, 'org'> & Readonly<{ run: Run }>,
  hours: number,
): Promise<void> {
  await endLease(sql, by.run);
  await transition(sql.jobs, 'run_request_expire', {
    organizationId: by.org.organizationId,
    runRequestId: by.run.runRequestId,
    maxAttempts: 1,
    backoffSeconds: 1,
    backoffMaxSeconds: 1,
  });
  await sql.owner.query(
    `update app.runs set started_at = now() - interval '3 days', created_at = now() - interval '3 days',
       finished_at = now() - make_interval(hours => $2) where id = $1`,
    [by.run.runId, hours],
  );
  await sql.owner.query(`update app.action_invocation_files set remove_at = now() where run_id = $1`, [by.run.runId]);
  await sql.owner.query(`update app.action_invocations set remove_at = now() where run_id = $1`, [by.run.runId]);
}
