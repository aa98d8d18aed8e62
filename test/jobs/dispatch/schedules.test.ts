import t from 'tap';
import {
  completeRun,
  completeVerdict,
  createInitiative,
  createSecondProfile,
  createTestOrganization,
  runMode,
  runNext,
  type TestOrganization,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { createSchedule, scheduledTasks, scheduleItems, scheduleRow } from '../../support/schedule_fixtures.ts';
import { openSql } from '../../support/transitions.ts';
import { until } from '../../support/wait.ts';
import { addJob, dispatching, openClient, openJobs, spawnJobs } from '../support.ts';

const sql = await openSql(t);
const jobs = await openJobs(t, sql.url);
const scenario = scenarios(t, sql);

const DAY_MS = 86_400_000;
const ago = (ms: number) => new Date(Date.now() - ms).toISOString();

/** Lets the next fire of a schedule have been at a point in time: as if nothing had run since. */
async function missSince(org: TestOrganization, id: string, time: string): Promise<void> {
  await sql.owner.query('update app.schedules set next_run_at = $3 where organization_id = $1 and id = $2', [
    org.organizationId,
    id,
    time,
  ]);
}

async function fired(org: TestOrganization, id: string): Promise<string> {
  return until('it fires', async () => (await scheduleRow(sql, org, id)).last_task_id);
}

scenario('a due schedule fires, and pulls are woken', async (t) => {
  let heard = 0;
  const listener = await openClient(t, sql.url);
  listener.on('notification', () => {
    heard += 1;
  });
  await listener.query('listen runner_pull');
  const org = await createTestOrganization(sql);
  const { id } = await createSchedule(sql, org, { cron: '0 9 * * *', nextRunAt: ago(60_000) });
  const taskId = await fired(org, id);
  t.match(await scheduledTasks(sql, org, id), [{ id: taskId, status: 'pending' }]);
  await until('a pull is woken', () => heard > 0);
  const { next_run_at: next } = await scheduleRow(sql, org, id);
  t.equal(new Date(next ?? '').getUTCHours(), 9);
  t.ok(Date.parse(next ?? '') > Date.now());
});

scenario('after three days without any process each schedule makes one task', async (t) => {
  const org = await createTestOrganization(sql);
  // Nothing more comes due while the test runs: it is minutes to the next fire of each.
  const minute = (new Date().getUTCMinutes() + 7) % 15;
  const quarters = [0, 15, 30, 45].map((quarter) => quarter + minute);
  const crons = [`${quarters} * * * *`, `${minute} */2 * * *`, `${minute} 4 * * *`];
  const ids: string[] = [];
  for (const cron of crons) ids.push((await createSchedule(sql, org, { cron, overlap: 'allow' })).id);
  for (const id of ids) await missSince(org, id, ago(3 * DAY_MS));
  for (const id of ids) await fired(org, id);
  for (const id of ids) {
    const row = await scheduleRow(sql, org, id);
    t.ok(Date.parse(row.next_run_at ?? '') > Date.now() - 60_000, 'the next fire is to come');
    t.equal((await scheduledTasks(sql, org, id)).length, 1, row.cron);
  }
});

scenario('a schedule whose parent is being verified holds up no other, and fires after the verdict', async (t) => {
  const org = await createTestOrganization(sql);
  await createSecondProfile(sql, org, { key: 'judge' });
  const { root } = await createInitiative(sql, org, ['only'], { spec: { verification: 'agent' } });
  const taskTemplate = { title: 'Below', ownerAgentProfileId: org.profileId, parentId: root };
  await completeRun(sql.api, await runNext(sql, org));
  const judge = await runMode(sql, org, 'verify');
  const waiting = await createSchedule(sql, org, { taskTemplate, nextRunAt: ago(120_000) });
  const other = await createSchedule(sql, org, { nextRunAt: ago(60_000) });
  await fired(org, other.id);
  t.match(await scheduleRow(sql, org, waiting.id), { next_run_at: waiting.next_run_at, last_task_id: null });
  await completeVerdict(sql, judge, 'failed', { summary: 'More' });
  const taskId = await fired(org, waiting.id);
  t.match(await scheduledTasks(sql, org, waiting.id), [{ id: taskId, parent_id: root }]);
  t.same(await scheduleItems(sql, org, waiting.id), [], 'and nobody was told to mend it');
});

scenario('its time zone decides when it fires next', async (t) => {
  const org = await createTestOrganization(sql);
  const { id } = await createSchedule(sql, org, {
    cron: '15 2 * * *',
    timezone: 'Australia/Lord_Howe',
    nextRunAt: ago(1_000),
  });
  await fired(org, id);
  const next = new Date((await scheduleRow(sql, org, id)).next_run_at ?? '');
  const clock = next.toLocaleTimeString('en-GB', { timeZone: 'Australia/Lord_Howe', timeStyle: 'short' });
  t.ok(['02:15', '02:30'].includes(clock), `${clock} there`);
});

scenario('two processes at once make one task a fire', async (t) => {
  const other = await spawnJobs(t, sql.url);
  const org = await createTestOrganization(sql);
  const ids: string[] = [];
  for (let made = 0; made < 12; made += 1) {
    ids.push((await createSchedule(sql, org, { cron: '0 0 1 1 *', overlap: 'allow' })).id);
  }
  // The key is taken while the other's run goes on: for a moment both are at work.
  for (let round = 1; round <= 5; round += 1) {
    const time = ago((6 - round) * DAY_MS);
    await sql.owner.query('update app.schedules set next_run_at = $2 where organization_id = $1', [
      org.organizationId,
      time,
    ]);
    await addJob(sql.owner, 'dispatch', {}, 'dispatch');
    for (const id of ids) {
      await until('it fires', async () => {
        const { last_run_at: last } = await scheduleRow(sql, org, id);
        return last !== null && Date.parse(last) === Date.parse(time);
      });
    }
  }
  await dispatching(sql.owner);
  for (const id of ids) t.equal((await scheduledTasks(sql, org, id)).length, 5);
  t.notMatch(other.output(), 'cannot fire');
  t.same(
    jobs.logged.filter(({ msg }) => msg === 'dispatch cannot fire an item'),
    [],
  );
});
