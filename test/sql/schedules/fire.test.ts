import t from 'tap';
import { functionText } from '../../../engine/db/function_text.ts';
import { createChat, createChatOrganization } from '../../support/chat_fixtures.ts';
import {
  cancelTask,
  completeRun,
  completeVerdict,
  createInitiative,
  createSecondProfile,
  createTask,
  createTestOrganization,
  runMode,
  runNext,
  setWorkDispatch,
  type TestOrganization,
  taskRow,
  updateOrganization,
  updateProfile,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import {
  changeSchedule,
  createSchedule,
  fire,
  type ScheduleFields,
  scheduledTasks,
  scheduleItems,
  scheduleRow,
} from '../../support/schedule_fixtures.ts';
import { openSession, openSql, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const iso = (text: string | null) => text && new Date(text).toISOString();

/** A schedule of every day at nine, whose next fire is the first of March. */
function daily(org: TestOrganization, fields: ScheduleFields = {}) {
  return createSchedule(sql, org, { nextRunAt: '2030-03-01T09:00:00.000Z', ...fields });
}

scenario('a fire makes the task of the template, and the schedule moves on', async (test) => {
  const org = await createTestOrganization(sql);
  const schedule = await daily(org, {
    taskTemplate: { title: 'Report', ownerProfileKey: org.profileKey, priority: 7, spec: { objective: 'Sum up' } },
  });
  const { outcome, taskId } = await fire(sql, org, schedule.id);
  test.equal(outcome, 'fired');
  test.match(await taskRow(sql, org, String(taskId)), {
    title: 'Report',
    status: 'pending',
    priority: 7,
    version: 1,
    spec: { objective: 'Sum up' },
    dedupe_key: `schedule:${schedule.id}:2030-03-01T09:00Z`,
    schedule_id: schedule.id,
  });
  const after = await scheduleRow(sql, org, schedule.id);
  test.match(after, { status: 'active', last_task_id: taskId });
  test.equal(iso(after.last_run_at), '2030-03-01T09:00:00.000Z');
  test.equal(iso(after.next_run_at), '2030-03-02T09:00:00.000Z');
});

scenario('a fire is one, however often and by however many it is called', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await daily(org, { overlap: 'allow' });
  const at = { fireAt: '2030-03-01T09:00:00.000Z', now: '2030-03-01T09:00:01.000Z' };
  const results = await Promise.all(Array.from({ length: 4 }, () => fire(sql, org, id, at)));
  test.same(results.map(({ outcome }) => outcome).sort(), ['fired', 'unchanged', 'unchanged', 'unchanged']);
  test.match(await fire(sql, org, id, at), { outcome: 'unchanged' });
  test.equal((await scheduledTasks(sql, org, id)).length, 1);

  const [one, two] = [await openSession(test, sql, 'runner_jobs'), await openSession(test, sql, 'runner_jobs')];
  const next = { fireAt: '2030-03-02T09:00:00.000Z', now: '2030-03-02T09:00:01.000Z' };
  await one.begin();
  await fire(sql, org, id, { ...next, connection: one });
  const second = fire(sql, org, id, { ...next, connection: two });
  await two.waits();
  await one.commit();
  test.match(await second, { outcome: 'unchanged' });
  test.equal((await scheduledTasks(sql, org, id)).length, 2);
});

scenario(
  'a call that comes late, when the next fire is due, does not make the task of the last one again',
  async (test) => {
    const org = await createTestOrganization(sql);
    const { id } = await daily(org, { overlap: 'allow' });
    test.match(await fire(sql, org, id), { outcome: 'fired' });
    const late = { fireAt: '2030-03-01T09:00:00.000Z', now: '2030-03-02T09:00:01.000Z' };
    test.match(await fire(sql, org, id, late), { outcome: 'unchanged' });
    test.equal((await scheduledTasks(sql, org, id)).length, 1);
    test.equal(
      iso((await scheduleRow(sql, org, id)).next_run_at),
      '2030-03-02T09:00:00.000Z',
      'which is still to come',
    );
  },
);

scenario('nothing fires early, while it is paused, or for another organization', async (test) => {
  const [org, other] = [await createTestOrganization(sql), await createTestOrganization(sql)];
  const { id } = await daily(org);
  test.match(await fire(sql, org, id, { now: '2030-03-01T08:59:59.999Z' }), { outcome: 'unchanged' });
  const args = {
    organizationId: other.organizationId,
    scheduleId: id,
    fireAt: '2030-03-01T09:00:00Z',
    version: 1,
    nextRunAt: '2030-03-02T09:00:00Z',
    now: '2030-03-01T09:00:00Z',
  };
  test.match(await transition(sql.jobs, 'schedule_fire', args), { outcome: 'unchanged' });
  const own = { ...args, organizationId: org.organizationId };
  const same = { ...own, nextRunAt: args.fireAt };
  test.match(await transition(sql.jobs, 'schedule_fire', same), { outcome: 'unchanged' }, 'it never stays where it is');
  await changeSchedule(sql.api, org, 'pause', id);
  test.match(await transition(sql.jobs, 'schedule_fire', own), { outcome: 'unchanged' });
  test.same(await scheduledTasks(sql, org, id), []);
});

scenario('what three days of downtime missed is one task', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await daily(org, { cron: '0 */6 * * *', overlap: 'allow' });
  test.match(await fire(sql, org, id, { now: '2030-03-04T10:30:00.000Z' }), { outcome: 'fired' });
  test.equal((await scheduledTasks(sql, org, id)).length, 1);
  const row = await scheduleRow(sql, org, id);
  test.equal(iso(row.next_run_at), '2030-03-04T12:00:00.000Z');
  test.match(await fire(sql, org, id, { now: '2030-03-04T10:30:01.000Z' }), { outcome: 'unchanged' });
});

scenario('what a pause missed is none', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await daily(org);
  await changeSchedule(sql.api, org, 'pause', id);
  await changeSchedule(sql.api, org, 'resume', id, { nextRunAt: '2030-03-05T09:00:00.000Z' });
  const missed = { fireAt: '2030-03-01T09:00:00.000Z', now: '2030-03-04T12:00:00.000Z' };
  test.match(await fire(sql, org, id, missed), { outcome: 'unchanged' });
  test.same(await scheduledTasks(sql, org, id), []);
  test.match(await fire(sql, org, id), { outcome: 'fired' });
});

scenario('with overlap skip a fire waits for no open task and makes none beside it', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await daily(org);
  await fire(sql, org, id);
  test.match(await fire(sql, org, id), { outcome: 'skipped' });
  const run = await runNext(sql, org);
  test.match(await fire(sql, org, id), { outcome: 'skipped' });
  const skipped = await scheduleRow(sql, org, id);
  test.equal(iso(skipped.last_run_at), '2030-03-01T09:00:00.000Z', 'the fire that made the last task');
  test.equal(iso(skipped.next_run_at), '2030-03-04T09:00:00.000Z');
  await completeRun(sql.api, run);
  test.match(await fire(sql, org, id), { outcome: 'fired' });
  test.equal((await scheduledTasks(sql, org, id)).length, 2);
  const allowing = await daily(org, { overlap: 'allow' });
  for (let fires = 0; fires < 3; fires += 1) await fire(sql, org, allowing.id);
  test.equal((await scheduledTasks(sql, org, allowing.id)).length, 3);
});

scenario('a stopped organization gathers one task a schedule, over three days', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await daily(org, { cron: '0 * * * *', overlap: 'allow' });
  await setWorkDispatch(sql.api, org, true);
  const outcomes = new Set<unknown>();
  for (let hours = 0; hours < 72; hours += 1) outcomes.add((await fire(sql, org, id))['outcome']);
  test.same([...outcomes], ['fired', 'skipped']);
  const tasks = await scheduledTasks(sql, org, id);
  test.equal(tasks.length, 1);
  await cancelTask(sql.api, org, String(tasks[0]?.['id']));
  test.match(await fire(sql, org, id), { outcome: 'fired' }, 'none is gathered any more');
  await setWorkDispatch(sql.api, org, false);
  test.match(await fire(sql, org, id), { outcome: 'fired' });
});

scenario('a suspended organization makes nothing, and makes nothing up for it', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await daily(org);
  await updateOrganization(sql.api, org, { status: 'suspended' });
  test.match(await fire(sql, org, id), { outcome: 'skipped' });
  test.same(await scheduledTasks(sql, org, id), []);
  test.same(await scheduleItems(sql, org, id), []);
  await updateOrganization(sql.api, org, { status: 'active' });
  const row = await scheduleRow(sql, org, id);
  test.equal(iso(row.next_run_at), '2030-03-02T09:00:00.000Z');
  test.match(await fire(sql, org, id), { outcome: 'fired' });
});

scenario('a deleted organization makes nothing, and nothing of it is due', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await createSchedule(sql, org, { nextRunAt: '2020-01-01T09:00:00Z' });
  const due = `select ids from ${functionText('dispatch_due', {})}
    where kind = 'fire' and organization_id = $1`;
  test.same((await sql.jobs.query(due, [org.organizationId])).rows, [{ ids: [id] }]);
  await transition(sql.api, 'organization_delete', { organizationId: org.organizationId });
  test.same((await sql.jobs.query(due, [org.organizationId])).rows, []);
  test.match(await fire(sql, org, id), { outcome: 'unchanged' });
  test.same(await scheduledTasks(sql, org, id), []);
});

scenario('a disabled owner: no task, one notification, until a task is made again', async (test) => {
  const org = await createTestOrganization(sql);
  const { id, key } = await daily(org);
  await updateProfile(sql.api, org, { status: 'disabled' });
  for (let fires = 0; fires < 3; fires += 1) test.match(await fire(sql, org, id), { outcome: 'failed' });
  test.same(await scheduledTasks(sql, org, id), []);
  const items = await scheduleItems(sql, org, id);
  test.equal(items.length, 1);
  test.match(items, [
    { kind: 'notification', purpose: 'schedule', status: 'open', blocking: false, task_id: null, body: /disabled/ },
  ]);
  test.match(items[0]?.['body'], key);
  await sql.owner.query(
    `update app.human_inbox_items set status = 'acknowledged', responded_at = now() where schedule_id = $1`,
    [id],
  );
  await fire(sql, org, id);
  test.equal((await scheduleItems(sql, org, id)).length, 1, 'told once, also after it was acknowledged');
  await updateProfile(sql.api, org, { status: 'enabled' });
  test.match(await fire(sql, org, id), { outcome: 'fired' });
  await updateProfile(sql.api, org, { status: 'disabled' });
  await cancelTask(sql.api, org, 'T-1');
  await fire(sql, org, id);
  test.match(await scheduleItems(sql, org, id), [{ status: 'acknowledged' }, { status: 'open' }], 'told anew');
  await updateProfile(sql.api, org, { status: 'enabled' });
  await fire(sql, org, id);
  test.match(await scheduleItems(sql, org, id), [{}, { status: 'cancelled' }], 'and over when it works again');
});

scenario('a task that is refused is told in the same way, with its reason', async (test) => {
  const org = await createTestOrganization(sql);
  const { root } = await createInitiative(sql, org, ['only']);
  const template = { title: 'Below', ownerAgentProfileId: org.profileId, parentId: root };
  const { id } = await daily(org, { taskTemplate: template });
  test.match(await fire(sql, org, id), { outcome: 'fired' });
  await cancelTask(sql.api, org, root);
  test.match(await fire(sql, org, id), { outcome: 'failed' });
  test.match(await scheduleItems(sql, org, id), [{ body: /Only an open initiative/ }]);
  const row = await scheduleRow(sql, org, id);
  test.equal(iso(row.next_run_at), '2030-03-03T09:00:00.000Z', 'and it goes on');
  await changeSchedule(sql.api, org, 'delete', id);
  test.match(await scheduleItems(sql, org, id), [{ status: 'cancelled' }]);
});

scenario('a fire whose parent is being verified waits for the verdict, and nobody is told', async (test) => {
  const org = await createTestOrganization(sql);
  await createSecondProfile(sql, org, { key: 'judge' });
  const { root } = await createInitiative(sql, org, ['only'], { spec: { verification: 'agent' } });
  const template = { title: 'Below', ownerAgentProfileId: org.profileId, parentId: root };
  const { id } = await daily(org, { taskTemplate: template });
  await completeRun(sql.api, await runNext(sql, org));
  const judge = await runMode(sql, org, 'verify');
  const before = await scheduleRow(sql, org, id);
  for (const now of ['2030-03-01T09:00:00.000Z', '2030-03-03T12:00:00.000Z']) {
    test.match(await fire(sql, org, id, { now }), { outcome: 'postponed' });
  }
  test.same(await scheduleRow(sql, org, id), before, 'it is due as it was');
  test.same(await scheduleItems(sql, org, id), []);
  await completeVerdict(sql, judge, 'failed', { summary: 'More' });
  test.match(await fire(sql, org, id, { now: '2030-03-03T12:00:01.000Z' }), { outcome: 'fired' });
  test.equal((await scheduledTasks(sql, org, id)).length, 1, 'one for all that came due meanwhile');
  test.equal(iso((await scheduleRow(sql, org, id)).next_run_at), '2030-03-04T09:00:00.000Z');
});

scenario('while its parent is being verified, what a person has to mend is told all the same', async (test) => {
  const org = await createTestOrganization(sql);
  await createSecondProfile(sql, org, { key: 'judge' });
  const owner = await createSecondProfile(sql, org, { key: 'owner' });
  const { root } = await createInitiative(sql, org, ['only'], { spec: { verification: 'agent' } });
  const { id } = await daily(org, { taskTemplate: { title: 'Below', ownerProfileKey: 'owner', parentId: root } });
  await completeRun(sql.api, await runNext(sql, org));
  await runMode(sql, org, 'verify');
  await updateProfile(sql.api, owner, { status: 'disabled' });
  test.match(await fire(sql, org, id), { outcome: 'failed' });
  test.match(await scheduleItems(sql, org, id), [{ body: /disabled/ }]);
});

scenario('a schedule outlives the chat that it comes from', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const { id } = await daily(org, {
    taskTemplate: { title: 'Report', ownerProfileKey: org.profileKey, sourceChatId: chat.id },
  });
  await sql.owner.query(
    `update app.chats set status = 'archived', archived_at = now(), removed_at = now() where id = $1`,
    [chat.id],
  );
  const { outcome, taskId } = await fire(sql, org, id);
  test.equal(outcome, 'fired');
  test.match(await taskRow(sql, org, String(taskId)), { source_chat_id: null });
});

scenario('a task that somebody made with the key of a fire is not taken for its task', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await daily(org);
  const dedupeKey = `schedule:${id}:2030-03-01T09:00Z`;
  const other = await createTask(sql, org, { title: 'Something else', dedupeKey });
  const { outcome, taskId } = await fire(sql, org, id);
  test.equal(outcome, 'fired');
  test.not(taskId, other.id);
  test.match(await taskRow(sql, org, String(taskId)), { title: 'By the clock', schedule_id: id });
});
