import { randomUUID } from 'node:crypto';
import t from 'tap';
import { builtinCatalog, catalogRevision } from '../../../engine/catalog/index.ts';
import { adminClient, type Row } from '../../support/admin.ts';
import { sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import {
  claimNext,
  createTask,
  createTestOrganization,
  failRun,
  runNew,
  type TestOrganization,
  taskRow,
} from '../../support/fixtures.ts';
import { createSchedule, scheduleRow } from '../../support/schedule_fixtures.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const admin = adminClient(app);

type Payload = Row & Readonly<{ auditEntryId: string }>;
type Decision = Readonly<{ decided: Payload }>;

/** `decided: name(organizationId, …) { fields auditEntryId }`. */
async function decide(
  org: Pick<TestOrganization, 'organizationId'>,
  name: string,
  fields: string,
  args: Row = {},
  client = admin,
) {
  const variables = { organizationId: org.organizationId, ...args };
  return (await client.query<Decision>(mutation(name, fields, args), variables)).decided;
}

const types: Readonly<Record<string, string>> = { taskRef: 'String!', scheduleRef: 'String!', runRequestId: 'UUID!' };

function mutation(name: string, fields: string, args: Row): string {
  const heads = Object.keys(args).map((arg) => `, $${arg}: ${types[arg]}`);
  const given = Object.keys(args).map((arg) => `, ${arg}: $${arg}`);
  return `mutation ($organizationId: UUID!${heads.join('')}) {
    decided: ${name}(organizationId: $organizationId${given.join('')}) { ${fields} auditEntryId } }`;
}

async function refused(
  org: Pick<TestOrganization, 'organizationId'>,
  name: string,
  fields: string,
  args: Row = {},
  client = admin,
) {
  const variables = { organizationId: org.organizationId, ...args };
  const { status, errors } = await client.refused(mutation(name, fields, args), variables);
  const { code, statusCode } = errors[0]?.extensions ?? {};
  return [status, statusCode, code].join(' ');
}

/** The entries of the audit log, as GraphQL shows them, the newest first. */
async function entries(org: Pick<TestOrganization, 'organizationId'>): Promise<Row[]> {
  const { auditEntries } = await adminClient(app, org.organizationId).query<{ auditEntries: { nodes: Row[] } }>(
    '{ auditEntries { nodes { id actorKind actor action subjectKind subjectId outcome arguments result requestId } } }',
  );
  return auditEntries.nodes;
}

t.test('work dispatch is stopped and resumed, and both are in the audit log', async (test) => {
  const org = await createTestOrganization(sql);
  const stopped = await decide(org, 'stopDispatch', 'organization { id workDispatchStoppedAt }');
  test.match(stopped, { organization: { id: org.organizationId, workDispatchStoppedAt: String } });
  await createTask(sql, org);
  const resumed = await decide(org, 'resumeDispatch', 'organization { workDispatchStoppedAt } publishedRunRequests');
  test.match(resumed, { organization: { workDispatchStoppedAt: null }, publishedRunRequests: 1 });
  test.match(await entries(org), [
    { id: resumed.auditEntryId, action: 'dispatch.resume', result: { publishedRunRequests: 1 } },
    {
      id: stopped.auditEntryId,
      actorKind: 'admin',
      actor: 'tess',
      action: 'dispatch.stop',
      outcome: 'done',
      requestId: /^[0-9a-f-]{36}$/,
    },
  ]);
});

t.test('a task is cancelled, and brought back by a person who means it', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const cancelled = await decide(org, 'cancelTask', 'task { id identifier status phase }', { taskRef: 'T-1' });
  test.match(cancelled, { task: { id: task.id, identifier: 'T-1', status: 'cancelled', phase: 'closed' } });
  test.match(await entries(org), [{ id: cancelled.auditEntryId, action: 'task.cancel', subjectId: task.id }]);
  const retried = await decide(org, 'retryTask', 'task { id status phase }', { taskRef: task.id });
  test.match(retried, { task: { id: task.id, status: 'pending', phase: 'execute' } });
  test.equal(await refused(org, 'retryTask', 'task { id }', { taskRef: task.id }), '200 409 state_conflict');
  test.equal(await refused(org, 'cancelTask', 'task { id }', { taskRef: 'T-9' }), '200 404 task_not_found');
  test.same(
    (await entries(org)).map(({ action }) => action),
    ['task.retry', 'task.cancel'],
    'what changed nothing is not written down',
  );
});

t.test('a task that failed is retried', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await failRun(sql.api, run, { retryable: false });
  test.match(await taskRow(sql, org, run.taskId), { status: 'failed' });
  const retried = await decide(org, 'retryTask', 'task { status causes { kind } }', { taskRef: run.taskId });
  test.match(retried, { task: { status: 'pending', causes: [{ kind: 'worker' }] } });
});

t.test('a lease is ended by force, and a claim is given to the next worker', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const fields = 'runRequest { state attempt leaseRemainingSeconds } outcome';
  const expired = await decide(org, 'expireLease', fields, { runRequestId: run.runRequestId });
  test.match(expired, { outcome: 'expired', runRequest: { state: 'queued', attempt: 1, leaseRemainingSeconds: null } });
  const requeued = await decide(org, 'requeueRunRequest', fields, { runRequestId: run.runRequestId });
  test.match(requeued, { outcome: 'published', runRequest: { state: 'published' } });
  const claim = await claimNext(sql, org);
  test.equal(claim.runRequestId, run.runRequestId, 'a worker may take it at once');
  test.equal((await entries(org)).length, 2);
  test.equal(await refused(org, 'expireLease', fields, { runRequestId: randomUUID() }), '200 404 not_found');
});

t.test('a schedule is paused and resumed from its next fire', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await createSchedule(sql, org);
  const { key } = await scheduleRow(sql, org, id);
  const paused = await decide(org, 'pauseSchedule', 'schedule { id status nextRunAt }', { scheduleRef: key });
  test.match(paused, { schedule: { id, status: 'paused', nextRunAt: null } });
  const resumed = await decide(org, 'resumeSchedule', 'schedule { status nextRunAt }', { scheduleRef: id });
  test.match(resumed, { schedule: { status: 'active', nextRunAt: String } });
  test.equal(await refused(org, 'resumeSchedule', 'schedule { id }', { scheduleRef: 'none' }), '200 404 not_found');
});

t.test('an organization is suspended and reactivated', async (test) => {
  const org = await createTestOrganization(sql);
  test.match(await decide(org, 'suspendOrganization', 'organization { status }'), {
    organization: { status: 'suspended' },
  });
  test.match(await decide(org, 'reactivateOrganization', 'organization { status }'), {
    organization: { status: 'active' },
  });
  test.equal(
    await refused({ organizationId: randomUUID() }, 'suspendOrganization', 'organization { id }'),
    '200 404 organization_not_found',
  );
});

t.test('with a header decisions reach that organization alone', async (test) => {
  const org = await createTestOrganization(sql);
  const other = await createTestOrganization(sql);
  const scoped = adminClient(app, org.organizationId);
  const response = await refused(other, 'stopDispatch', 'organization { id }', {}, scoped);
  test.equal(response, '200 404 organization_not_found');
  test.same(await entries(other), []);
  await decide(org, 'stopDispatch', 'organization { id }', {}, scoped);
  const catalog = `mutation ($catalog: JSON!) { publishCatalogRevision(catalog: $catalog) { auditEntryId } }`;
  const { errors } = await scoped.refused(catalog, { catalog: builtinCatalog() });
  test.match(errors, [{ extensions: { code: 'validation_failed' } }], 'nor all of them');
});

t.test('a catalog is published once, checked before, and written down for the platform', async (test) => {
  const text = `mutation ($catalog: JSON!) { decided: publishCatalogRevision(catalog: $catalog) {
    published auditEntryId agentCatalog { revision publishedAt catalog } } }`;
  const catalog = { ...builtinCatalog(), version: 4_711 };
  const { decided } = await admin.query<Decision>(text, { catalog });
  test.match(decided, { published: true, agentCatalog: { revision: catalogRevision(catalog), catalog } });
  test.match((await admin.query<Decision>(text, { catalog })).decided, { published: false });
  const { auditEntry } = await admin.query(
    `query ($id: UUID!) { auditEntry(organizationId: "00000000-0000-0000-0000-000000000000", id: $id) { action actor organization { id } } }`,
    { id: decided.auditEntryId },
  );
  test.match(auditEntry, { action: 'catalog.publish', actor: 'tess', organization: null });
  const { errors } = await admin.refused(text, { catalog: { ...catalog, profiles: [] } });
  test.match(errors, [{ extensions: { code: 'validation_failed', statusCode: 400 } }]);
  test.ok(errors[0]?.extensions.issues?.length);
});

t.test('several decisions in one request go one after the other, each by itself', async (test) => {
  const org = await createTestOrganization(sql);
  const text = `mutation ($id: UUID!) {
    stop: stopDispatch(organizationId: $id) { organization { workDispatchStoppedAt } }
    wrong: cancelTask(organizationId: $id, taskRef: "T-9") { auditEntryId }
    resume: resumeDispatch(organizationId: $id) { organization { workDispatchStoppedAt } }
  }`;
  const { data, errors } = await admin.refused(text, { id: org.organizationId });
  test.match(errors, [{ path: ['wrong'], extensions: { code: 'task_not_found' } }]);
  test.match(data, {
    stop: { organization: { workDispatchStoppedAt: String } },
    wrong: null,
    resume: { organization: { workDispatchStoppedAt: null } },
  });
  test.match(await entries(org), [{ action: 'dispatch.resume' }, { action: 'dispatch.stop' }]);
});
