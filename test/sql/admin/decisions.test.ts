import { randomUUID } from 'node:crypto';
import t from 'tap';
import { builtinCatalog, catalogRevision } from '../../../engine/catalog/index.ts';
import {
  ADMIN,
  type AdminDecision,
  adminDecides,
  auditEntries,
  type GivenToAdmin,
  PLATFORM,
} from '../../support/audit_fixtures.ts';
import {
  cancelTask,
  claimNext,
  completeRun,
  createTask,
  createTestOrganization,
  failRun,
  lastRequest,
  pull,
  runNew,
  startRun,
  type TestOrganization,
  taskRow,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { onboardingIn, organizationOf, placeOf, publishCatalog } from '../../support/onboarding_fixtures.ts';
import { createSchedule } from '../../support/schedule_fixtures.ts';
import {
  type Connection,
  type JsonObject,
  openSession,
  openSql,
  refusal,
  transition,
} from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);
await publishCatalog(sql);

type Place = Pick<TestOrganization, 'organizationId'>;
const decide = <D extends AdminDecision>(connection: Connection, name: D, org: Place, ...given: GivenToAdmin<D>) =>
  adminDecides(connection, name, org.organizationId, ...given);
const NEXT = '2035-01-01T09:00:00Z';

type DecideIn = (connection: Connection, org: Place) => Promise<JsonObject>;
const plain =
  (name: 'dispatch_stop' | 'dispatch_resume' | 'organization_suspend' | 'organization_reactivate') =>
  async (): Promise<DecideIn> =>
  (connection, org) =>
    decide(connection, name, org);

/** Decisions about what an organization has: each is prepared there, and may then be tried anywhere. */
const decisionsInside: Readonly<Record<string, (org: TestOrganization) => Promise<DecideIn>>> = {
  async task_cancel(org) {
    const args = { taskRef: (await createTask(sql, org)).id };
    return (connection, at) => decide(connection, 'task_cancel', at, args);
  },
  async task_retry(org) {
    const run = await runNew(sql, org);
    await failRun(sql.api, run, { retryable: false });
    return (connection, at) => decide(connection, 'task_retry', at, { taskRef: run.taskId });
  },
  async schedule_pause(org) {
    const args = { scheduleRef: (await createSchedule(sql, org)).key };
    return (connection, at) => decide(connection, 'schedule_pause', at, args);
  },
  async schedule_resume(org) {
    const args = { scheduleRef: (await createSchedule(sql, org)).key, nextRunAt: NEXT, version: 1 };
    return (connection, at) => decide(connection, 'schedule_resume', at, args);
  },
};
/** Every decision about an organization. */
const decisions: typeof decisionsInside = {
  dispatch_stop: plain('dispatch_stop'),
  dispatch_resume: plain('dispatch_resume'),
  organization_suspend: plain('organization_suspend'),
  organization_reactivate: plain('organization_reactivate'),
  ...decisionsInside,
};

for (const [name, prepare] of Object.entries(decisions)) {
  scenario(`${name}: one entry, with who decided, in the transaction of the change`, async (test) => {
    const org = await createTestOrganization(sql);
    const decideIn = await prepare(org);
    const session = await openSession(test, sql, 'runner_admin');
    await session.begin();
    await decideIn(session, org);
    await session.rollback();
    test.same(await auditEntries(sql, org.organizationId), [], 'rolled back together');
    const result = await decideIn(sql.admin, org);
    const entries = await auditEntries(sql, org.organizationId);
    test.equal(entries.length, 1);
    test.match(entries, [
      {
        id: result['audit_entry_id'],
        actor_kind: 'admin',
        actor: ADMIN,
        action: name.replace(/_(?=[a-z]+$)/, '.'),
        outcome: 'done',
        code: null,
        request_id: 'request-1',
      },
    ]);
    test.ok(entries[0]?.subject_id);
  });

  scenario(`${name}: an organization that is not there, or deleted, is not found`, async (test) => {
    const org = await createTestOrganization(sql);
    const decideIn = await prepare(org);
    const nowhere = { organizationId: randomUUID() };
    test.match(await refusal(decideIn(sql.admin, nowhere)), { status: 404, raised: true });
    await transition(sql.api, 'organization_delete', { organizationId: org.organizationId });
    test.equal((await refusal(decideIn(sql.admin, org))).code, 'organization_not_found');
    test.same(await auditEntries(sql, org.organizationId), []);
    test.same(await auditEntries(sql, nowhere.organizationId), []);
  });
}

for (const [name, prepare] of Object.entries(decisionsInside)) {
  scenario(`${name}: what is another organization’s is not found`, async (test) => {
    const [org, other] = [await createTestOrganization(sql), await createTestOrganization(sql)];
    const decideIn = await prepare(org);
    test.equal((await refusal(decideIn(sql.admin, other))).status, 404);
    test.same(await auditEntries(sql, other.organizationId), []);
    test.same(await auditEntries(sql, org.organizationId), []);
  });
}

scenario('dispatch is stopped and resumed as by an owner, and a repeat is written down as well', async (test) => {
  const org = await createTestOrganization(sql);
  test.match(await decide(sql.admin, 'dispatch_stop', org), { organization: { work_dispatch_stopped_at: String } });
  await decide(sql.admin, 'dispatch_stop', org);
  const task = await createTask(sql, org);
  test.match(await lastRequest(sql, org, task.id), { state: 'queued', parked: true });
  const resumed = await decide(sql.admin, 'dispatch_resume', org);
  test.match(resumed, { organization: { work_dispatch_stopped_at: null }, published_run_requests: 1 });
  test.match(await decide(sql.admin, 'dispatch_resume', org), { published_run_requests: 0 });
  test.match(await auditEntries(sql, org.organizationId), [
    { action: 'dispatch.stop', result: { publishedRunRequests: 0 } },
    { action: 'dispatch.stop' },
    {
      action: 'dispatch.resume',
      subject_kind: 'organization',
      subject_id: org.organizationId,
      result: { publishedRunRequests: 1 },
    },
    { action: 'dispatch.resume', result: { publishedRunRequests: 0 } },
  ]);
});

scenario('two stop dispatch at once: both have decided it, and it is stopped once', async (test) => {
  const org = await createTestOrganization(sql);
  const [one, two] = [await openSession(test, sql, 'runner_admin'), await openSession(test, sql, 'runner_admin')];
  await one.begin();
  const first = await decide(one, 'dispatch_stop', org);
  const second = decide(two, 'dispatch_stop', org);
  await two.waits();
  await one.commit();
  test.match(await second, { organization: first['organization'] as JsonObject });
  test.equal((await auditEntries(sql, org.organizationId)).length, 2);
});

scenario('a task is cancelled, and cancelled again, and a completed one is not', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const result = await decide(sql.admin, 'task_cancel', org, { taskRef: run.taskId });
  test.match(result, { task: { id: run.taskId, status: 'cancelled' } });
  await decide(sql.admin, 'task_cancel', org, { taskRef: run.taskId });
  test.match(await auditEntries(sql, org.organizationId), [
    {
      subject_kind: 'task',
      subject_id: run.taskId,
      arguments: { taskRef: run.taskId },
      result: { status: 'cancelled' },
    },
    { subject_id: run.taskId },
  ]);
  test.match(await completeRun(sql.api, run), { status: 'cancelled' });
  const done = await runNew(sql, org);
  await completeRun(sql.api, done);
  const { identifier_number: number } = await taskRow(sql, org, done.taskId);
  const refused = await refusal(decide(sql.admin, 'task_cancel', org, { taskRef: `T-${number}` }));
  test.match(refused, { status: 409, code: 'state_conflict', raised: true });
  test.equal((await auditEntries(sql, org.organizationId)).length, 2, 'a refusal changes nothing and is no decision');
});

scenario('a failed task is retried once, whoever asks twice', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const args = { taskRef: run.taskId };
  test.equal((await refusal(decide(sql.admin, 'task_retry', org, args))).code, 'state_conflict', 'not while it runs');
  await failRun(sql.api, run, { retryable: false });
  const [one, two] = [await openSession(test, sql, 'runner_admin'), await openSession(test, sql, 'runner_admin')];
  await one.begin();
  test.match(await decide(one, 'task_retry', org, args), { task: { status: 'pending' } });
  const second = refusal(decide(two, 'task_retry', org, args));
  await two.waits();
  await one.commit();
  test.equal((await second).code, 'state_conflict');
  test.match(await auditEntries(sql, org.organizationId), [{ action: 'task.retry', result: { status: 'pending' } }]);
  await cancelTask(sql.api, org, run.taskId);
  test.match(await decide(sql.admin, 'task_retry', org, args), { task: { status: 'pending' } }, 'a cancelled one too');
});

scenario('two cancel one task at once: both results say so', async (test) => {
  const org = await createTestOrganization(sql);
  const args = { taskRef: (await createTask(sql, org)).id };
  const [one, two] = [await openSession(test, sql, 'runner_admin'), await openSession(test, sql, 'runner_admin')];
  await one.begin();
  await decide(one, 'task_cancel', org, args);
  const second = decide(two, 'task_cancel', org, args);
  await two.waits();
  await one.commit();
  test.match(await second, { task: { status: 'cancelled' } });
});

scenario('a schedule is paused and resumed, by id or key, and again', async (test) => {
  const org = await createTestOrganization(sql);
  const { id, key } = await createSchedule(sql, org);
  const paused = await decide(sql.admin, 'schedule_pause', org, { scheduleRef: key });
  test.match(paused, { schedule: { id, status: 'paused', next_run_at: null } });
  await decide(sql.admin, 'schedule_pause', org, { scheduleRef: id });
  const resume = { scheduleRef: id, nextRunAt: NEXT, version: 1 };
  test.match(await decide(sql.admin, 'schedule_resume', org, resume), { schedule: { id, status: 'active' } });
  const later = { scheduleRef: id, nextRunAt: '2036-01-01T09:00:00Z', version: 1 };
  const again = await decide(sql.admin, 'schedule_resume', org, later);
  test.equal(
    (again['schedule'] as JsonObject)['next_run_at'],
    '2035-01-01T09:00:00+00:00',
    'an active one stays as it is',
  );
  test.match(await auditEntries(sql, org.organizationId), [
    { action: 'schedule.pause', subject_id: id, arguments: { scheduleRef: key }, result: { status: 'paused' } },
    { action: 'schedule.pause', subject_id: id, arguments: { scheduleRef: id } },
    { action: 'schedule.resume', subject_kind: 'schedule', subject_id: id, result: { status: 'active' } },
    { action: 'schedule.resume', subject_id: id },
  ]);
  const unknown = { scheduleRef: 'no-such', nextRunAt: null, version: null };
  test.equal((await refusal(decide(sql.admin, 'schedule_resume', org, unknown))).code, 'not_found');
});

scenario('a pause and a resume at once come one after the other', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await createSchedule(sql, org);
  const [one, two] = [await openSession(test, sql, 'runner_admin'), await openSession(test, sql, 'runner_admin')];
  await one.begin();
  await decide(one, 'schedule_pause', org, { scheduleRef: id });
  const resumed = decide(two, 'schedule_resume', org, { scheduleRef: id, nextRunAt: NEXT, version: 1 });
  await two.waits();
  await one.commit();
  test.match(await resumed, { schedule: { status: 'active', next_run_at: /^2035/ } });
});

scenario('a suspended organization hands out nothing until it is reactivated', async (test) => {
  const org = await createTestOrganization(sql);
  await createTask(sql, org);
  const claim = await claimNext(sql, org);
  const suspended = await decide(sql.admin, 'organization_suspend', org);
  test.match(suspended, { organization: { status: 'suspended' } });
  test.match(await decide(sql.admin, 'organization_suspend', org), { organization: { status: 'suspended' } });
  test.equal((await refusal(startRun(sql.api, claim))).reason, 'lease_lost');
  test.same(await pull(sql.api, { organizationIds: [org.organizationId] }), []);
  test.match(await decide(sql.admin, 'organization_reactivate', org), { organization: { status: 'active' } });
  test.match(await decide(sql.admin, 'organization_reactivate', org), { organization: { status: 'active' } });
  test.equal((await pull(sql.api, { organizationIds: [org.organizationId] })).length, 1);
  test.match(await auditEntries(sql, org.organizationId), [
    { action: 'organization.suspend', result: { status: 'suspended' } },
    { action: 'organization.suspend' },
    { action: 'organization.reactivate', result: { status: 'active' } },
    { action: 'organization.reactivate' },
  ]);
});

scenario('an organization that was suspended while it was onboarded is onboarded again', async (test) => {
  const onboarding = await onboardingIn(sql, 'review');
  const org = placeOf(onboarding);
  test.match(await decide(sql.admin, 'organization_reactivate', org), { organization: { status: 'onboarding' } });
  await decide(sql.admin, 'organization_suspend', org);
  test.match(await decide(sql.admin, 'organization_reactivate', org), { organization: { status: 'onboarding' } });
  const completed = placeOf(await onboardingIn(sql, 'completed'));
  await decide(sql.admin, 'organization_suspend', completed);
  test.match(await decide(sql.admin, 'organization_reactivate', completed), { organization: { status: 'active' } });
  test.equal((await organizationOf(sql, onboarding)).status, 'onboarding');
});

scenario('a suspension and a reactivation at once come one after the other', async (test) => {
  const org = await createTestOrganization(sql);
  const [one, two] = [await openSession(test, sql, 'runner_admin'), await openSession(test, sql, 'runner_admin')];
  await one.begin();
  await decide(one, 'organization_suspend', org);
  const second = decide(two, 'organization_reactivate', org);
  await two.waits();
  await one.commit();
  test.match(await second, { organization: { status: 'active' } });
  const { rows } = await sql.owner.query('select status from app.organizations where id = $1', [org.organizationId]);
  test.same(rows, [{ status: 'active' }]);
});

t.test('a catalog is published once, and each decision is an entry of the platform', async (test) => {
  const catalog = { ...builtinCatalog(), version: 2035 };
  const args = { revision: catalogRevision(catalog), catalog, admin: ADMIN, requestId: 'request-2' };
  const [one, two] = [await openSession(test, sql, 'runner_admin'), await openSession(test, sql, 'runner_admin')];
  await one.begin();
  await transition(one, 'admin_catalog_publish', args);
  await one.rollback();
  test.same(await auditEntries(sql, PLATFORM), [], 'rolled back together');
  await one.begin();
  const first = await transition(one, 'admin_catalog_publish', args);
  test.match(first, { revision: args.revision, published: true });
  const second = transition(two, 'admin_catalog_publish', args);
  await two.waits();
  await one.commit();
  test.match(await second, { revision: args.revision, published: false });
  test.match(await auditEntries(sql, PLATFORM), [
    {
      id: first['audit_entry_id'],
      actor_kind: 'admin',
      actor: ADMIN,
      action: 'catalog.publish',
      subject_kind: 'catalog',
      subject_id: args.revision,
      arguments: { version: 2035, profiles: catalog.profiles.map(({ key }) => key) },
      result: { published: true },
      request_id: 'request-2',
    },
    { result: { published: false } },
  ]);
});

t.test('the decisions are the administration’s alone', async (test) => {
  const { rows } = await sql.owner.query<{ name: string; grantees: string[] }>(
    `select p.proname as name, array_agg(a.grantee::regrole::text order by 1) filter (where a.grantee <> p.proowner) as grantees
     from pg_proc p, aclexplode(p.proacl) a
     where p.pronamespace = 'app'::regnamespace and p.proname like 'admin\\_%' and p.prosecdef
     group by 1 order by 1`,
  );
  test.equal(rows.length, 11);
  for (const { name, grantees } of rows) test.same(grantees, ['runner_admin'], name);
  const executable = await sql.owner.query<{ name: string }>(
    `select p.proname as name from pg_proc p where p.pronamespace = 'app'::regnamespace and p.prosecdef
       and p.provolatile = 'v' and p.proname not like 'admin\\_%'
       and has_function_privilege('runner_admin', p.oid, 'execute') order by 1`,
  );
  test.same(executable.rows, [], 'and it calls no other transition');
});
