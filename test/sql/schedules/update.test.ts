import t from 'tap';
import {
  capability,
  createSecondProfile,
  createTestOrganization,
  runNew,
  SERVICE,
  updateOrganization,
  updateProfile,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import {
  changeSchedule,
  createSchedule,
  fire,
  scheduleItems,
  scheduleRow,
  updateSchedule,
} from '../../support/schedule_fixtures.ts';
import { openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const stale = { status: 409, code: 'state_conflict', reason: 'stale' };
const missing = { status: 404, code: 'not_found' };
const NEXT = '2099-01-01T09:00:00Z';

scenario('a schedule takes what a patch says, and the rest stays', async (test) => {
  const org = await createTestOrganization(sql);
  const made = await createSchedule(sql, org, { key: 'daily', cron: '0 9 * * *' });
  const titled = await updateSchedule(sql.api, org, 'daily', { title: 'Renamed' }, { nextRunAt: NEXT });
  test.match(titled, { ...made, title: 'Renamed', version: 2, updated_at: String });
  test.equal(titled.next_run_at, made.next_run_at, 'its times are the old ones');
  const patch = { cron: '0 8 * * *', timezone: 'Europe/Berlin', overlap: 'allow' };
  const paced = await updateSchedule(sql.api, org, made.id, patch, { expectedVersion: 2, nextRunAt: NEXT });
  test.match(paced, { ...patch, version: 3, title: 'Renamed', next_run_at: /^2099-01-01T09/ });
  const restored = await updateSchedule(sql.api, org, made.id, { overlap: null }, { expectedVersion: 3 });
  test.match(restored, { overlap: 'skip', version: 4 });
});

scenario('a patch that changes nothing leaves all of it, and a repeat of one that did is stale', async (test) => {
  const org = await createTestOrganization(sql);
  const made = await createSchedule(sql, org);
  test.same(await updateSchedule(sql.api, org, made.id, {}), made);
  test.same(await updateSchedule(sql.api, org, made.id, { cron: made.cron, timezone: made.timezone }), made);
  await updateSchedule(sql.api, org, made.id, { title: 'Other' });
  test.match(await refusal(updateSchedule(sql.api, org, made.id, { title: 'Other' })), stale);
  test.match(await refusal(updateSchedule(sql.api, org, made.id, {}, { expectedVersion: 3 })), stale);
});

scenario('fires, pauses and resumes leave the version; a paused schedule stays paused', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await createSchedule(sql, org);
  test.match(await fire(sql, org, id), { outcome: 'fired' });
  await changeSchedule(sql.api, org, 'pause', id);
  test.match(await updateSchedule(sql.api, org, id, { cron: '0 1 * * *' }, { nextRunAt: NEXT }), {
    status: 'paused',
    next_run_at: null,
    version: 2,
  });
  const resume = { nextRunAt: NEXT };
  test.match(await refusal(changeSchedule(sql.api, org, 'resume', id, { ...resume, version: 1 })), stale);
  test.match(await changeSchedule(sql.api, org, 'resume', id, { ...resume, version: 2 }), {
    status: 'active',
    version: 2,
  });
});

scenario(
  'the template is merged: one way to name the owner replaces the other, null means the operator',
  async (test) => {
    const org = await createTestOrganization(sql, { key: 'operator' });
    const growth = await createSecondProfile(sql, org, { key: 'growth' });
    const taskTemplate = { title: 'Report', ownerAgentProfileId: org.profileId, priority: 3, spec: { objective: 'A' } };
    const { id } = await createSchedule(sql, org, { taskTemplate });
    const keyed = await updateSchedule(sql.api, org, id, {
      taskTemplate: { ownerProfileKey: 'growth', priority: null, spec: { verification: 'backend' } },
    });
    test.same(keyed.task_template, {
      title: 'Report',
      ownerProfileKey: 'growth',
      spec: { objective: 'A', verification: 'backend' },
    });
    const byId = { taskTemplate: { ownerAgentProfileId: growth.profileId } };
    const named = await updateSchedule(sql.api, org, id, byId, { expectedVersion: 2 });
    test.match(named.task_template, { ownerAgentProfileId: growth.profileId, ownerProfileKey: undefined });
    const none = { taskTemplate: { ownerAgentProfileId: null } };
    const operator = await updateSchedule(sql.api, org, id, none, { expectedVersion: 3 });
    test.match(operator.task_template, { ownerAgentProfileId: org.profileId });
    test.match(await fire(sql, org, id), { outcome: 'fired' });
  },
);

scenario('a template that could be no task is refused as at the creation, and nothing changes', async (test) => {
  const org = await createTestOrganization(sql);
  const made = await createSchedule(sql, org);
  for (const [template, expected] of [
    [{ ownerProfileKey: 'nobody' }, { status: 400, reason: 'unknown_profile' }],
    [{ parentId: org.profileId }, { status: 404, code: 'task_not_found' }],
    [{ spec: { verifierProfileKey: 'nobody' } }, { status: 400, reason: 'unknown_profile' }],
  ] as const) {
    const patch = { title: 'Not this', taskTemplate: template };
    test.match(await refusal(updateSchedule(sql.api, org, made.id, patch)), expected);
  }
  test.match(await scheduleRow(sql, org, made.id), {
    version: 1,
    title: made.title,
    task_template: made.task_template,
  });
});

scenario('a mended template is tried anew, and the notification closes with the next task', async (test) => {
  const org = await createTestOrganization(sql, { key: 'operator' });
  const second = await createSecondProfile(sql, org, { key: 'second' });
  const taskTemplate = { title: 'x', ownerAgentProfileId: second.profileId };
  const { id } = await createSchedule(sql, org, { taskTemplate });
  await updateProfile(sql.api, second, { status: 'disabled' });
  test.match(await fire(sql, org, id), { outcome: 'failed' });
  await updateSchedule(sql.api, org, id, { taskTemplate: { ownerProfileKey: 'operator' } });
  test.match(await scheduleItems(sql, org, id), [{ status: 'open' }]);
  test.match(await fire(sql, org, id), { outcome: 'fired' });
  test.match(await scheduleItems(sql, org, id), [{ status: 'cancelled' }]);
});

scenario('a notification from before a resume closes with the next task', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await createSchedule(sql, org);
  await updateProfile(sql.api, org, { status: 'disabled' });
  test.match(await fire(sql, org, id), { outcome: 'failed' });
  await updateProfile(sql.api, org, { status: 'enabled' });
  for (const verb of ['pause', 'resume'] as const) await changeSchedule(sql.api, org, verb, id);
  test.match(await fire(sql, org, id), { outcome: 'fired' });
  test.match(await scheduleItems(sql, org, id), [{ status: 'cancelled' }]);
});

scenario('only who may change schedules changes them, and only those of the organization', async (test) => {
  const [org, other] = [await createTestOrganization(sql), await createTestOrganization(sql)];
  const { id, key } = await createSchedule(sql, org);
  for (const ref of [id, key]) {
    test.match(await refusal(updateSchedule(sql.api, other, ref, { title: 'x' }, { expectedVersion: 9 })), missing);
  }
  const department = await createSecondProfile(sql, org, { key: 'growth', kind: 'department' });
  const run = await runNew(sql, department);
  const actor = capability(run.executionToken);
  const asked = updateSchedule(sql.api, org, id, { title: 'x' }, { actor, expectedVersion: 9 });
  test.match(await refusal(asked), { status: 401, code: 'agent_unauthorized' });
  await updateOrganization(sql.api, org, { status: 'suspended' });
  const agents = updateSchedule(sql.api, org, id, { title: 'x' }, { actor: SERVICE });
  test.match(await refusal(agents), { status: 409, code: 'state_conflict' });
});

scenario('of two changes at once one wins, and a change beside the fire leaves the new times', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await createSchedule(sql, org);
  const [a, b] = [await openSession(test, sql), await openSession(test, sql)];
  await a.begin();
  await updateSchedule(a, org, id, { title: 'First' });
  const second = refusal(updateSchedule(b, org, id, { title: 'Second' }));
  await b.waits();
  await a.commit();
  test.match(await second, stale);
  const job = await openSession(test, sql, 'runner_jobs');
  const due = (await scheduleRow(sql, org, id)).next_run_at ?? '';
  await a.begin();
  // The new expression fires next when the old one did: the version alone tells them apart.
  await updateSchedule(a, org, id, { cron: '30 9 1 1 *' }, { expectedVersion: 2, nextRunAt: due });
  const firing = fire(sql, org, id, { connection: job });
  await job.waits();
  await a.commit();
  test.match(await firing, { outcome: 'unchanged' });
  test.match(await scheduleRow(sql, org, id), { version: 3, next_run_at: due });
});
