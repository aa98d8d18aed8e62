import t from 'tap';
import {
  claimNext,
  completeRun,
  createTask,
  createTestOrganization,
  lastRequest,
  pull,
  type Run,
  runNew,
  startRun,
  type TestOrganization,
  taskRow,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql } from '../../support/transitions.ts';
import { until } from '../../support/wait.ts';
import { addJob, dispatching, openClient, openJobs, poolOf, queued } from '../support.ts';

const sql = await openSql(t);
const jobs = await openJobs(t, sql.url);
const scenario = scenarios(t, sql);

let heard = 0;
const listener = await openClient(t, sql.url);
listener.on('notification', () => {
  heard += 1;
});
await listener.query('listen runner_pull');

const soon = (ms: number) => new Date(Date.now() + ms).toISOString();
const stateOf = async (org: TestOrganization, taskId: string) => (await lastRequest(sql, org, taskId)).state;
const statusOf = async (org: TestOrganization, taskId: string) => (await taskRow(sql, org, taskId)).status;

/** Runs `first`, and makes every later change of the row fail until the returned function is called; both in one transaction. */
async function breakRow(table: 'tasks' | 'run_requests', id: string, first = 'select 1') {
  const name = `broken_${id.replaceAll('-', '')}`;
  await sql.owner.query(`
    ${first};
    create function ${name}() returns trigger language plpgsql as $$ begin raise exception 'broken on purpose'; end $$;
    create trigger ${name} before update on app.${table} for each row when (old.id = '${id}') execute function ${name}()`);
  return () => sql.owner.query(`drop trigger ${name} on app.${table}; drop function ${name}()`);
}

const makeDue = (run: Run) =>
  `update app.run_requests set lease_expires_at = clock_timestamp() where id = '${run.runRequestId}'`;

/** Moves a time of a task close to now; what was said of the time before is certain until then. */
const comes = (column: 'waiting_until' | 'scheduled_at', taskId: string) =>
  sql.owner.query(`update app.tasks set ${column} = clock_timestamp() + interval '300 ms' where id = $1`, [taskId]);

const complaints = (id: string) => jobs.logged.filter((line) => line['id'] === id).map(({ msg }) => msg);

scenario('a claim that nobody starts is handed out again, and pulls are woken', async (t) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const before = heard;
  const [claim] = await pull(sql.api, { organizationIds: [org.organizationId], claimSeconds: 1 });
  await until('it is published again', async () => (await stateOf(org, task.id)) === 'published');
  await until('a pull is woken', () => heard > before);
  const again = await claimNext(sql, org);
  t.equal(again.runRequestId, claim?.runRequestId);
  t.not(again.leaseToken, claim?.leaseToken);
  t.equal(again.attempt, 1, 'nothing was counted');
});

/** A run whose lease has ended by itself, and whether that was noticed within a second. */
async function silent() {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const run = await startRun(sql.api, await claimNext(sql, org), { leaseSeconds: 1 });
  const ended = await until('the run expires', async () => {
    const { rows } = await sql.owner.query(
      `select status, error ->> 'code' as code, finished_at - $3::timestamptz < interval '1 second' as in_time
       from app.runs where organization_id = $1 and id = $2 and finished_at is not null`,
      [org.organizationId, run.runId, run.leaseExpiresAt],
    );
    return rows[0];
  });
  return { org, task, run, ended };
}

scenario(
  'a run whose worker falls silent expires in time, and its request is published after the backoff',
  async (t) => {
    let one = await silent();
    // A machine that stands still for a moment delays one of them, and not five.
    for (let more = 0; more < 4 && !one.ended.in_time; more += 1) one = await silent();
    const { org, task, run, ended } = one;
    t.match(ended, { status: 'expired', code: 'run_lease_expired', in_time: true });
    await until('the request is published', async () => (await stateOf(org, task.id)) === 'published');
    const request = await lastRequest(sql, org, task.id);
    t.ok(Date.now() >= request.due_at.getTime(), 'not before its backoff');
    const second = await startRun(sql.api, await claimNext(sql, org));
    t.equal(second.attempt, 2);
    t.ok(Number.parseInt(second.leaseToken, 10) > Number.parseInt(run.leaseToken, 10), 'the fence has risen');
  },
);

scenario('a task that waits for a time wakes when it comes', async (t) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const result = { kind: 'waiting', until: soon(3_600_000), reason: 'The bank is closed' };
  await completeRun(sql.api, run, { result });
  t.equal(await statusOf(org, run.taskId), 'waiting');
  await comes('waiting_until', run.taskId);
  await until('it wakes', async () => (await statusOf(org, run.taskId)) === 'pending');
  t.equal(await stateOf(org, run.taskId), 'published');
});

scenario('a scheduled task wakes when its time comes', async (t) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org, { scheduledAt: soon(3_600_000) });
  t.equal(await statusOf(org, task.id), 'blocked');
  await comes('scheduled_at', task.id);
  await until('it wakes', async () => (await statusOf(org, task.id)) === 'pending');
  t.equal(await stateOf(org, task.id), 'published');
});

scenario('more than a round takes is moved all the same', async (t) => {
  const org = await createTestOrganization(sql);
  const count = 205;
  for (let made = 0; made < count; made += 1) await createTask(sql, org, { scheduledAt: soon(3_600_000) });
  await sql.owner.query(
    `update app.tasks set scheduled_at = clock_timestamp() where organization_id = $1 and status = 'blocked'`,
    [org.organizationId],
  );
  await until('all are ready', async () => {
    const { rows } = await sql.owner.query(
      `select count(*)::int as ready from app.tasks where organization_id = $1 and status = 'pending'`,
      [org.organizationId],
    );
    return rows[0]?.ready === count;
  });
  t.equal((await pull(sql.api, { organizationIds: [org.organizationId], limit: 50 })).length, 5, 'up to the capacity');
});

scenario('an item that fails stops no other, and is not logged over and over', async (t) => {
  const org = await createTestOrganization(sql);
  const broken = await runNew(sql, org);
  const fine = await runNew(sql, org);
  const repair = await breakRow('run_requests', broken.runRequestId, `${makeDue(broken)}; ${makeDue(fine)}`);
  await until('the other is published again', async () => (await stateOf(org, fine.taskId)) === 'published');
  await until('the first try is told', () => complaints(broken.runRequestId).length > 0);
  t.equal(await stateOf(org, broken.taskId), 'started');
  await repair();
  await until('it expires when it can', async () => (await stateOf(org, broken.taskId)) !== 'started');
  t.same(complaints(broken.runRequestId), ['dispatch cannot expire an item'], 'told once');
});

scenario('one of several that wake together fails alone', async (t) => {
  const org = await createTestOrganization(sql);
  const make = () => createTask(sql, org, { scheduledAt: soon(3_600_000) });
  const [broken, ...fine] = [await make(), await make(), await make()];
  const repair = await breakRow(
    'tasks',
    broken.id,
    `update app.tasks set scheduled_at = clock_timestamp() where organization_id = '${org.organizationId}'`,
  );
  for (const { id } of fine) await until('the others wake', async () => (await statusOf(org, id)) === 'pending');
  await until('the first try is told', () => complaints(broken.id).length > 0);
  await repair();
  await until('it wakes when it can', async () => (await statusOf(org, broken.id)) === 'pending');
  t.same(complaints(broken.id), ['dispatch cannot wake an item'], 'told once');
});

scenario('what somebody has locked is left to a later round, without a word', async (t) => {
  const org = await createTestOrganization(sql);
  const held = await runNew(sql, org);
  const fine = await runNew(sql, org);
  const session = await openSession(t, sql, 'owner');
  await session.begin();
  await session.query('select from app.tasks where id = $1 for update', [held.taskId]);
  await sql.owner.query(`${makeDue(held)}; ${makeDue(fine)}`);
  await until('the other expires', async () => (await stateOf(org, fine.taskId)) !== 'started');
  t.equal(await stateOf(org, held.taskId), 'started');
  await session.commit();
  await until('it expires too', async () => (await stateOf(org, held.taskId)) !== 'started');
  t.same(complaints(held.runRequestId), []);
});

scenario('a newer run takes over, and the older one ends', async (t) => {
  await dispatching(sql.owner);
  const [before] = await queued(sql.owner, 'dispatch');
  await addJob(sql.owner, 'dispatch', {}, 'dispatch');
  await until('only the newer one is left', async () => {
    const rows = await queued(sql.owner, 'dispatch');
    return rows.length === 1 && rows[0]?.id !== before?.id && rows[0]?.locked_by === poolOf(jobs);
  });
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org, { scheduledAt: soon(300) });
  await until('it goes on', async () => (await statusOf(org, task.id)) === 'pending');
  t.equal((await queued(sql.owner, 'dispatch')).length, 1);
});

scenario('a process that stops hands dispatch over at once', async (t) => {
  const second = await openJobs(t, sql.url);
  await until('the second has it', async () => {
    if ((await dispatching(sql.owner)) === poolOf(second)) return true;
    // Which process takes a job is left to chance.
    await addJob(sql.owner, 'dispatch', {}, 'dispatch');
    return false;
  });
  await second.stop();
  await dispatching(sql.owner, (pool) => pool === poolOf(jobs));
  const rows = await until('older runs have ended', async () => {
    const left = await queued(sql.owner, 'dispatch');
    return left.length === 1 && left;
  });
  t.match(rows, [{ attempts: 1 }], 'added again, not found as that of a dead process');
});
