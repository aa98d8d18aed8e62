import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  capability,
  completeRun,
  createInitiative,
  createSecondProfile,
  createTask,
  createTestOrganization,
  runMode,
  runNew,
  runNext,
  SERVICE,
  updateOrganization,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { changeSchedule, createSchedule, fire, scheduleCreate, scheduleRow } from '../../support/schedule_fixtures.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const missing = { status: 404, code: 'not_found' };
const unauthorized = { status: 401, code: 'agent_unauthorized' };

scenario('a schedule is made active, with its defaults', async (test) => {
  const org = await createTestOrganization(sql);
  const schedule = await createSchedule(sql, org, { key: 'daily', nextRunAt: '2099-01-01T09:00:00Z' });
  test.match(schedule, {
    key: 'daily',
    title: 'By the clock',
    status: 'active',
    overlap: 'skip',
    last_run_at: null,
    last_task_id: null,
  });
  test.equal(new Date(schedule.next_run_at ?? '').toISOString(), '2099-01-01T09:00:00.000Z');
  const nowhere = { ...org, organizationId: randomUUID() };
  test.match(await refusal(scheduleCreate(sql.api, nowhere)), { status: 404, code: 'organization_not_found' });
});

scenario('making a schedule makes no task, takes no number, and waits for no verdict', async (test) => {
  const org = await createTestOrganization(sql);
  await createSecondProfile(sql, org, { key: 'judge' });
  const { root } = await createInitiative(sql, org, ['only'], { spec: { verification: 'agent' } });
  await completeRun(sql.api, await runNext(sql, org));
  await runMode(sql, org, 'verify');
  const taskTemplate = { title: 'x', ownerAgentProfileId: org.profileId, parentId: root };
  test.match(await refusal(createTask(sql, org, taskTemplate)), { status: 409, reason: 'being_verified' });
  await createSchedule(sql, org, { taskTemplate });
  const unknown = { status: 400, code: 'validation_failed', reason: 'unknown_profile' };
  const unowned = { title: 'x', parentId: root, ownerProfileKey: 'nobody' };
  test.match(await refusal(scheduleCreate(sql.api, org, { taskTemplate: unowned })), unknown);
  const unverified = { ...taskTemplate, spec: { verification: 'agent', verifierProfileKey: 'nobody' } };
  test.match(await refusal(scheduleCreate(sql.api, org, { taskTemplate: unverified })), unknown);
  const cycle = { ...taskTemplate, dependsOn: [root] };
  test.match(await refusal(scheduleCreate(sql.api, org, { taskTemplate: cycle })), {
    status: 409,
    reason: 'cycle',
  });
  await createSchedule(sql, org);
  const { rows } = await sql.owner.query('select identifier_number from app.tasks where organization_id = $1', [
    org.organizationId,
  ]);
  test.equal(rows.length, 2);
  test.match(await createTask(sql, org), { identifier_number: 2 });
});

scenario('a key is one schedule’s in an organization, also of two at once', async (test) => {
  const [org, other] = [await createTestOrganization(sql), await createTestOrganization(sql)];
  await createSchedule(sql, org, { key: 'daily' });
  await createSchedule(sql, other, { key: 'daily' });
  const inUse = { status: 409, code: 'state_conflict', reason: 'in_use' };
  test.match(await refusal(scheduleCreate(sql.api, org, { key: 'daily' })), inUse);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  await scheduleCreate(session, org, { key: 'weekly' });
  const second = refusal(scheduleCreate(rival, org, { key: 'weekly' }));
  await rival.waits();
  await session.commit();
  test.match(await second, inUse);
});

scenario('the owner of its tasks is a profile: the run’s own by default, or else the operator', async (test) => {
  const org = await createTestOrganization(sql);
  const foreign = await createTestOrganization(sql);
  const unknown = { status: 400, code: 'validation_failed', reason: 'unknown_profile' };
  for (const owner of [{ ownerAgentProfileId: foreign.profileId }, { ownerProfileKey: foreign.profileKey }]) {
    test.match(await refusal(scheduleCreate(sql.api, org, { taskTemplate: { title: 'x', ...owner } })), unknown);
  }
  await createSchedule(sql, org, { taskTemplate: { title: 'x', ownerProfileKey: org.profileKey } });
  const second = await createSecondProfile(sql, org, { kind: 'operator' });
  const run = await runNew(sql, second);
  const actor = capability(run.executionToken);
  const owned = await scheduleCreate(sql.api, org, { taskTemplate: { title: 'x' } }, actor);
  test.match(owned['schedule'], { task_template: { title: 'x', ownerAgentProfileId: second.profileId } });
  const unowned = await scheduleCreate(sql.api, org, { taskTemplate: { title: 'x' } });
  test.match(unowned['schedule'], { task_template: { title: 'x', ownerAgentProfileId: org.profileId } });
  const none = await createTestOrganization(sql, { kind: 'department' });
  test.match(await refusal(scheduleCreate(sql.api, none, { taskTemplate: { title: 'x' } })), unknown);
});

scenario('the deletion of the profile that owns its tasks comes before a schedule or after it', async (test) => {
  const org = await createTestOrganization(sql);
  const gone = await createSecondProfile(sql, org, { key: 'gone' });
  const [maker, deleter] = [await openSession(test, sql), await openSession(test, sql)];
  const taskTemplate = { title: 'x', ownerAgentProfileId: gone.profileId };
  const deletion = { organizationId: gone.organizationId, agentProfileId: gone.profileId };
  await maker.begin();
  await scheduleCreate(maker, org, { taskTemplate });
  const second = transition(deleter, 'agent_profile_delete', deletion);
  await deleter.waits();
  await maker.commit();
  await second;
  const late = await createSecondProfile(sql, org, { key: 'late' });
  await deleter.begin();
  await transition(deleter, 'agent_profile_delete', { ...deletion, agentProfileId: late.profileId });
  const refused = refusal(scheduleCreate(maker, org, { taskTemplate: { title: 'x', ownerProfileKey: 'late' } }));
  await maker.waits();
  await deleter.commit();
  test.match(await refused, { status: 400, code: 'validation_failed', reason: 'unknown_profile' });
});

scenario('another organization’s schedule is not there', async (test) => {
  const [org, other] = [await createTestOrganization(sql), await createTestOrganization(sql)];
  const { id, key } = await createSchedule(sql, org);
  for (const verb of ['pause', 'resume', 'delete'] as const) {
    for (const ref of [id, key]) test.match(await refusal(changeSchedule(sql.api, other, verb, ref)), missing, verb);
  }
  test.match(await fire(sql, org, id, { connection: sql.jobs }), { outcome: 'fired' });
  test.match(await scheduleRow(sql, org, id), { status: 'active' });
});

scenario('runs of operators and chats change schedules, those of departments do not', async (test) => {
  const org = await createTestOrganization(sql);
  const department = await createSecondProfile(sql, org, { kind: 'department' });
  const { id } = await createSchedule(sql, org);
  const own = await runNew(sql, department);
  for (const actor of [capability(own.executionToken), capability('of-nobody')]) {
    test.match(await refusal(scheduleCreate(sql.api, department, {}, actor)), unauthorized);
    for (const verb of ['pause', 'resume', 'delete'] as const) {
      test.match(await refusal(changeSchedule(sql.api, org, verb, id, { actor })), unauthorized, verb);
    }
  }
  const operator = await runNew(sql, org);
  const actor = capability(operator.executionToken);
  for (const verb of ['pause', 'resume'] as const) await changeSchedule(sql.api, org, verb, id, { actor });
  await updateOrganization(sql.api, org, { status: 'suspended' });
  const suspended = { status: 409, code: 'state_conflict' };
  test.match(await refusal(scheduleCreate(sql.api, org, {}, SERVICE)), suspended);
  test.match(await refusal(changeSchedule(sql.api, org, 'pause', id, { actor: SERVICE })), suspended);
});

scenario('a schedule that a run makes comes before the end of its lease or after it', async (test) => {
  const org = await createTestOrganization(sql);
  const [maker, worker] = [await openSession(test, sql), await openSession(test, sql)];
  const run = await runNew(sql, org);
  const actor = capability(run.executionToken);
  await maker.begin();
  await scheduleCreate(maker, org, {}, actor);
  const end = completeRun(worker, run);
  await worker.waits();
  await maker.commit();
  await end;
  test.match(await refusal(scheduleCreate(sql.api, org, {}, actor)), unauthorized);
});
