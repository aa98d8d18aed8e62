import t from 'tap';
import {
  completeRun,
  completeVerdict,
  createInitiative,
  createPlace,
  createSecondProfile,
  type Place,
  runMode,
  runNext,
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
async function missSince(place: Place, id: string, time: string): Promise<void> {
  await sql.owner.query('update app.schedules set next_run_at = $3 where organization_id = $1 and id = $2', [
    place.organizationId,
    id,
    time,
  ]);
}

async function fired(place: Place, id: string): Promise<string> {
  return until('it fires', async () => (await scheduleRow(sql, place, id)).last_task_id);
}

scenario('a due schedule fires, and pulls are woken', async (t) => {
  let heard = 0;
  const listener = await openClient(t, sql.url);
  listener.on('notification', () => {
    heard += 1;
  });
  await listener.query('listen runner_pull');
  const place = await createPlace(sql);
  const { id } = await createSchedule(sql, place, { cron: '0 9 * * *', nextRunAt: ago(60_000) });
  const taskId = await fired(place, id);
  t.match(await scheduledTasks(sql, place, id), [{ id: taskId, status: 'pending' }]);
  await until('a pull is woken', () => heard > 0);
  const { next_run_at: next } = await scheduleRow(sql, place, id);
  t.equal(new Date(next ?? '').getUTCHours(), 9);
  t.ok(Date.parse(next ?? '') > Date.now());
});

scenario('after three days without any process each schedule makes one task', async (t) => {
  const place = await createPlace(sql);
  // Nothing more comes due while the test runs: it is minutes to the next fire of each.
  const minute = (new Date().getUTCMinutes() + 7) % 15;
  const quarters = [0, 15, 30, 45].map((quarter) => quarter + minute);
  const crons = [`${quarters} * * * *`, `${minute} */2 * * *`, `${minute} 4 * * *`];
  const ids: string[] = [];
  for (const cron of crons) ids.push((await createSchedule(sql, place, { cron, overlap: 'allow' })).id);
  for (const id of ids) await missSince(place, id, ago(3 * DAY_MS));
  for (const id of ids) await fired(place, id);
  for (const id of ids) {
    const row = await scheduleRow(sql, place, id);
    t.ok(Date.parse(row.next_run_at ?? '') > Date.now() - 60_000, 'the next fire is to come');
    t.equal((await scheduledTasks(sql, place, id)).length, 1, row.cron);
  }
});

scenario('a schedule whose parent is being verified holds up no other, and fires after the verdict', async (t) => {
  const place = await createPlace(sql);
  await createSecondProfile(sql, place, { key: 'judge' });
  const { root } = await createInitiative(sql, place, ['only'], { spec: { verification: 'agent' } });
  const taskTemplate = { title: 'Below', ownerAgentProfileId: place.profileId, parentId: root };
  await completeRun(sql.api, await runNext(sql, place));
  const judge = await runMode(sql, place, 'verify');
  const waiting = await createSchedule(sql, place, { taskTemplate, nextRunAt: ago(120_000) });
  const other = await createSchedule(sql, place, { nextRunAt: ago(60_000) });
  await fired(place, other.id);
  t.match(await scheduleRow(sql, place, waiting.id), { next_run_at: waiting.next_run_at, last_task_id: null });
  await completeVerdict(sql, judge, 'failed', { summary: 'More' });
  const taskId = await fired(place, waiting.id);
  t.match(await scheduledTasks(sql, place, waiting.id), [{ id: taskId, parent_id: root }]);
  t.same(await scheduleItems(sql, place, waiting.id), [], 'and nobody was told to mend it');
});

scenario('its time zone decides when it fires next', async (t) => {
  const place = await createPlace(sql);
  const { id } = await createSchedule(sql, place, {
    cron: '15 2 * * *',
    timezone: 'Australia/Lord_Howe',
    nextRunAt: ago(1_000),
  });
  await fired(place, id);
  const next = new Date((await scheduleRow(sql, place, id)).next_run_at ?? '');
  const clock = next.toLocaleTimeString('en-GB', { timeZone: 'Australia/Lord_Howe', timeStyle: 'short' });
  t.ok(['02:15', '02:30'].includes(clock), `${clock} there`);
});

scenario('two processes at once make one task a fire', async (t) => {
  const other = await spawnJobs(t, sql.url);
  const place = await createPlace(sql);
  const ids: string[] = [];
  for (let made = 0; made < 12; made += 1) {
    ids.push((await createSchedule(sql, place, { cron: '0 0 1 1 *', overlap: 'allow' })).id);
  }
  // The key is taken while the other's run goes on: for a moment both are at work.
  for (let round = 1; round <= 5; round += 1) {
    const time = ago((6 - round) * DAY_MS);
    await sql.owner.query('update app.schedules set next_run_at = $2 where organization_id = $1', [
      place.organizationId,
      time,
    ]);
    await addJob(sql.owner, 'dispatch', {}, 'dispatch');
    for (const id of ids) {
      await until('it fires', async () => {
        const { last_run_at: last } = await scheduleRow(sql, place, id);
        return last !== null && Date.parse(last) === Date.parse(time);
      });
    }
  }
  await dispatching(sql.owner);
  for (const id of ids) t.equal((await scheduledTasks(sql, place, id)).length, 5);
  t.notMatch(other.output(), 'cannot fire');
  t.same(
    jobs.logged.filter(({ msg }) => msg === 'dispatch cannot fire an item'),
    [],
  );
});
