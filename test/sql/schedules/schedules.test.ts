import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  capability,
  completeRun,
  createInitiative,
  createPlace,
  createSecondProfile,
  createTask,
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
  const place = await createPlace(sql);
  const schedule = await createSchedule(sql, place, { key: 'daily', nextRunAt: '2099-01-01T09:00:00Z' });
  test.match(schedule, {
    key: 'daily',
    title: 'By the clock',
    status: 'active',
    overlap: 'skip',
    last_run_at: null,
    last_task_id: null,
  });
  test.equal(new Date(schedule.next_run_at ?? '').toISOString(), '2099-01-01T09:00:00.000Z');
  const nowhere = { ...place, organizationId: randomUUID() };
  test.match(await refusal(scheduleCreate(sql.api, nowhere)), { status: 404, code: 'organization_not_found' });
});

scenario('making a schedule makes no task, takes no number, and waits for no verdict', async (test) => {
  const place = await createPlace(sql);
  await createSecondProfile(sql, place, { key: 'judge' });
  const { root } = await createInitiative(sql, place, ['only'], { spec: { verification: 'agent' } });
  await completeRun(sql.api, await runNext(sql, place));
  await runMode(sql, place, 'verify');
  const taskTemplate = { title: 'x', ownerAgentProfileId: place.profileId, parentId: root };
  test.match(await refusal(createTask(sql, place, taskTemplate)), { status: 409, reason: 'being_verified' });
  await createSchedule(sql, place, { taskTemplate });
  const ownerless = { title: 'x', parentId: root };
  const unknown = { status: 400, code: 'validation_failed', reason: 'unknown_profile' };
  for (const template of [ownerless, { ...ownerless, ownerProfileKey: 'nobody' }]) {
    test.match(await refusal(scheduleCreate(sql.api, place, { taskTemplate: template })), unknown);
  }
  const unverified = { ...taskTemplate, spec: { verification: 'agent', verifierProfileKey: 'nobody' } };
  test.match(await refusal(scheduleCreate(sql.api, place, { taskTemplate: unverified })), unknown);
  const circle = { ...taskTemplate, dependsOn: [root] };
  test.match(await refusal(scheduleCreate(sql.api, place, { taskTemplate: circle })), {
    status: 409,
    reason: 'circle',
  });
  await createSchedule(sql, place);
  const { rows } = await sql.owner.query('select identifier_number from app.tasks where organization_id = $1', [
    place.organizationId,
  ]);
  test.equal(rows.length, 2);
  test.match(await createTask(sql, place), { identifier_number: 2 });
});

scenario('a key is one schedule’s in an organization, also of two at once', async (test) => {
  const [place, other] = [await createPlace(sql), await createPlace(sql)];
  await createSchedule(sql, place, { key: 'daily' });
  await createSchedule(sql, other, { key: 'daily' });
  const inUse = { status: 409, code: 'state_conflict', reason: 'in_use' };
  test.match(await refusal(scheduleCreate(sql.api, place, { key: 'daily' })), inUse);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  await scheduleCreate(session, place, { key: 'weekly' });
  const second = refusal(scheduleCreate(rival, place, { key: 'weekly' }));
  await rival.waits();
  await session.commit();
  test.match(await second, inUse);
});

scenario('the owner of its tasks is a profile of the organization; a run may mean its own', async (test) => {
  const place = await createPlace(sql);
  const foreign = await createPlace(sql);
  const unknown = { status: 400, code: 'validation_failed', reason: 'unknown_profile' };
  for (const owner of [{ ownerAgentProfileId: foreign.profileId }, { ownerProfileKey: foreign.profileKey }, {}]) {
    test.match(await refusal(scheduleCreate(sql.api, place, { taskTemplate: { title: 'x', ...owner } })), unknown);
  }
  await createSchedule(sql, place, { taskTemplate: { title: 'x', ownerProfileKey: place.profileKey } });
  const run = await runNew(sql, place);
  const actor = capability(run.executionToken);
  const { schedule } = await scheduleCreate(sql.api, place, { taskTemplate: { title: 'x' } }, actor);
  test.match(schedule, { task_template: { title: 'x', ownerAgentProfileId: place.profileId } });
});

scenario('the deletion of the profile that owns its tasks comes before a schedule or after it', async (test) => {
  const place = await createPlace(sql);
  const gone = await createSecondProfile(sql, place, { key: 'gone' });
  const [maker, deleter] = [await openSession(test, sql), await openSession(test, sql)];
  const taskTemplate = { title: 'x', ownerAgentProfileId: gone.profileId };
  const deletion = { p_organization_id: gone.organizationId, p_agent_profile_id: gone.profileId };
  await maker.begin();
  await scheduleCreate(maker, place, { taskTemplate });
  const second = transition(deleter, 'agent_profile_delete', deletion);
  await deleter.waits();
  await maker.commit();
  await second;
  const late = await createSecondProfile(sql, place, { key: 'late' });
  await deleter.begin();
  await transition(deleter, 'agent_profile_delete', { ...deletion, p_agent_profile_id: late.profileId });
  const refused = refusal(scheduleCreate(maker, place, { taskTemplate: { title: 'x', ownerProfileKey: 'late' } }));
  await maker.waits();
  await deleter.commit();
  test.match(await refused, { status: 400, code: 'validation_failed', reason: 'unknown_profile' });
});

scenario('a pause ends the waiting for a fire, a resume starts it anew; repeats change nothing', async (test) => {
  const place = await createPlace(sql);
  const { id, key } = await createSchedule(sql, place);
  const paused = await changeSchedule(sql.api, place, 'pause', key);
  test.match(paused, { status: 'paused', next_run_at: null });
  test.same(await changeSchedule(sql.api, place, 'pause', id), paused);
  const resumed = await changeSchedule(sql.api, place, 'resume', id, { nextRunAt: '2099-01-01T09:00:00Z' });
  test.match(resumed, { status: 'active', next_run_at: /^2099-01-01T09/ });
  test.same(await changeSchedule(sql.api, place, 'resume', key, { nextRunAt: '2098-01-01T09:00:00Z' }), resumed);
  test.match(await changeSchedule(sql.api, place, 'delete', key), { id, status: 'active' });
  for (const verb of ['pause', 'resume', 'delete'] as const) {
    test.match(await refusal(changeSchedule(sql.api, place, verb, id)), missing, verb);
  }
  await createSchedule(sql, place, { key });
});

scenario('another organization’s schedule is not there', async (test) => {
  const [place, other] = [await createPlace(sql), await createPlace(sql)];
  const { id, key } = await createSchedule(sql, place);
  for (const verb of ['pause', 'resume', 'delete'] as const) {
    for (const ref of [id, key]) test.match(await refusal(changeSchedule(sql.api, other, verb, ref)), missing, verb);
  }
  test.match(await fire(sql, place, id, { connection: sql.jobs }), { outcome: 'fired' });
  test.match(await scheduleRow(sql, place, id), { status: 'active' });
});

scenario('runs of operators and chats change schedules, those of departments do not', async (test) => {
  const place = await createPlace(sql);
  const department = await createSecondProfile(sql, place, { kind: 'department' });
  const { id } = await createSchedule(sql, place);
  const own = await runNew(sql, department);
  for (const actor of [capability(own.executionToken), capability('of-nobody')]) {
    test.match(await refusal(scheduleCreate(sql.api, department, {}, actor)), unauthorized);
    for (const verb of ['pause', 'resume', 'delete'] as const) {
      test.match(await refusal(changeSchedule(sql.api, place, verb, id, { actor })), unauthorized, verb);
    }
  }
  const operator = await runNew(sql, place);
  const actor = capability(operator.executionToken);
  for (const verb of ['pause', 'resume'] as const) await changeSchedule(sql.api, place, verb, id, { actor });
  await updateOrganization(sql.api, place, { status: 'suspended' });
  const suspended = { status: 409, code: 'state_conflict' };
  test.match(await refusal(scheduleCreate(sql.api, place, {}, SERVICE)), suspended);
  test.match(await refusal(changeSchedule(sql.api, place, 'pause', id, { actor: SERVICE })), suspended);
});

scenario('a pause and a fire at once: either the fire was first, or there is none', async (test) => {
  const place = await createPlace(sql);
  const [first, second] = [await createSchedule(sql, place), await createSchedule(sql, place)];
  const [person, job] = [await openSession(test, sql), await openSession(test, sql, 'runner_jobs')];
  await person.begin();
  await changeSchedule(person, place, 'pause', first.id);
  const firing = fire(sql, place, first.id, { connection: job });
  await job.waits();
  await person.commit();
  test.match(await firing, { outcome: 'kept' });
  await job.begin();
  await fire(sql, place, second.id, { connection: job });
  const pausing = changeSchedule(person, place, 'pause', second.id);
  await person.waits();
  await job.commit();
  test.match(await pausing, { status: 'paused', last_task_id: String });
});
