import { appendFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import type pg from 'pg';
import t from 'tap';
import { checkEnd, checkNow, type Queries, type Violations } from '../../../scripts/chaos/checks.ts';
import type { Deck, FaultName } from '../../../scripts/chaos/faults.ts';
import { checkWorld, runRound } from '../../../scripts/chaos/round.ts';
import { startWorld } from '../../../scripts/chaos/world.ts';
import { brokenInvariants } from '../../support/invariants.ts';

const TASKS = 30;
const STALL_MS = 120_000;
// Where the machine has much else to do, leases of two seconds are lost by the dozen.
t.setTimeout(600_000);

const deck: Deck = {
  'worker killed': 3,
  'worker paused': 1,
  'api killed': 1,
  'jobs killed': 1,
  'connections cut': 1,
  'backend killed': 1,
  'postgres restarted, immediate': 1,
  'postgres restarted, fast': 1,
};

const aTask = `(select t from app.tasks t where t.kind = 'task' order by t.id limit 1)`;
const aRun = `(select u from app.runs u where u.status = 'succeeded' order by u.id limit 1)`;
/** What must be found, and how it comes into a world in which nothing is broken. */
const planted: Readonly<Record<string, string>> = {
  'every task is completed': `update app.tasks set status = 'failed', completed_at = null, failure_origin_id = id
    where id = (${aTask}).id`,
  'a task has exactly one successful run, an initiative none': `insert into app.runs (organization_id, id, kind, task_id,
      run_request_id, agent_profile_id, attempt, mode, status, fence, lease_secret_hash, worker_id, finished_at)
    select organization_id, app.uuid_v7(), kind, task_id, run_request_id, agent_profile_id, attempt + 1, mode, 'succeeded',
      fence, lease_secret_hash, worker_id, now() from app.runs where id = (${aRun}).id`,
  'the result of a task is that of its successful run, which passed': `update app.tasks
    set result = jsonb_set(result, '{completion,disposition}', '"failed"') where id = (${aTask}).id`,
  'the attempts of a request are 1 to n, each once': `update app.runs set attempt = attempt + 1 where id = (${aRun}).id`,
  'no attempt is counted twice': `update app.tasks set agent_run_count = agent_run_count + 1,
    consumed_agent_run_count = consumed_agent_run_count + 1 where id = (${aTask}).id`,
  'no run is active': `update app.runs set status = 'running', finished_at = null where id = (${aRun}).id`,
  'no request, claim or lease is left': `update app.run_requests set state = 'leased', finished_at = null,
    lease_expires_at = now(), lease_secret_hash = '\\x00' where id = (${aRun}).run_request_id`,
  'nothing is counted as ready or held': `update app.dispatch_lanes set ready = 1
    where agent_profile_id = (${aRun}).agent_profile_id`,
  'an accepted task is made, exactly once, and no other': `update app.tasks set title = title || ' again'
    where id = (${aTask}).id`,
  'an organization holds no more than its capacity': `update app.dispatch set held = capacity + 1
    where organization_id = (${aRun}).organization_id`,
  'a profile holds no more than its capacity': `update app.dispatch_lanes set held = capacity + 1
    where agent_profile_id = (${aRun}).agent_profile_id`,
  'an organization runs no more than its capacity': `
    with started as (
      update app.run_requests set state = 'started', finished_at = null, lease_secret_hash = '\\x00',
        lease_expires_at = now() + interval '1 minute' where id = (${aRun}).run_request_id),
    active as (update app.runs set status = 'running', finished_at = null where id = (${aRun}).id)
    update app.dispatch set capacity = 0 where organization_id = (${aRun}).organization_id`,
  'a profile runs no more than its capacity': `
    with started as (
      update app.run_requests set state = 'started', finished_at = null, lease_secret_hash = '\\x00',
        lease_expires_at = now() + interval '1 minute' where id = (${aRun}).run_request_id),
    active as (update app.runs set status = 'running', finished_at = null where id = (${aRun}).id)
    update app.dispatch_lanes set capacity = 0 where agent_profile_id = (${aRun}).agent_profile_id`,
  'no job has failed for good': `update graphile_worker._private_jobs set attempts = max_attempts, locked_at = null,
    locked_by = null`,
};

/** What `look` finds while a change is there, which is then undone. */
async function withPlanted(
  sql: pg.Pool,
  text: string,
  look: (sql: Queries) => Promise<Violations>,
): Promise<Violations> {
  const client = await sql.connect();
  try {
    await client.query('begin');
    // The counters would follow by themselves, and the version of a task is none of our business here.
    await client.query('set local session_replication_role = replica');
    const { rowCount } = await client.query(text);
    if (!rowCount) throw new Error(`nothing was planted by ${text}`);
    return await look(client as Queries);
  } finally {
    await client.query('rollback');
    client.release();
  }
}

t.test('work survives kills, pauses and restarts of every part', async (t) => {
  const stopping = new AbortController();
  const world = await startWorld({
    ...{ seed: 'npm test', durable: false, apis: 2, jobs: 1 },
    workers: { chaotic: 3, reference: 1 },
    signal: stopping.signal,
  });
  t.teardown(async () => {
    stopping.abort();
    await world.stop({ keep: !t.passing() });
  });
  const { signal } = stopping;
  const { violations, counts, progress, seconds } = await runRound(world, {
    tasks: TASKS,
    deck,
    stallMs: STALL_MS,
    signal,
  });
  t.comment(`${progress.runs} runs, of them ${progress.expired} expired, in ${seconds.toFixed(1)} s`);
  t.same(violations, {}, `nothing is broken (if it is, the logs are in ${world.folder})`);
  t.match(progress, { created: TASKS, completed: TASKS });
  for (const [name, count] of Object.entries(deck)) {
    t.equal(counts.get(name as FaultName), count, `${name}: ${count}`);
  }
  t.ok(world.recorder.starts.length > 0 && world.recorder.ends.length > 0, 'the workers tell what was confirmed');

  await t.test('each rule finds what breaks it', async (t) => {
    for (const [rule, text] of Object.entries(planted)) {
      const found = await withPlanted(world.sql, text, (sql) => checkEnd(sql, world.recorder));
      t.hasProp(found, rule, rule);
    }
    const start = world.recorder.starts[0];
    const end = world.recorder.ends[0];
    if (!start || !end) return;
    const facts = { ...world.recorder, starts: [{ ...start, attempt: 99 }], ends: [{ ...end, status: 'expired' }] };
    t.hasProps(await checkEnd(world.sql, facts), ['a confirmed start is kept', 'a confirmed end is kept']);
    const lost = planted['an organization holds no more than its capacity'] ?? '';
    const look = async (sql: Queries) => ({
      ...(await checkNow(sql)),
      ...(await brokenInvariants({ owner: sql as pg.Pool })),
    });
    t.hasProps(await withPlanted(world.sql, lost, look), [
      'an organization holds no more than its capacity',
      'an organization counts what is held and its open lanes',
    ]);
  });

  await t.test('bytes that are not those of the run are found', async (t) => {
    t.same(await checkWorld(world), {});
    const files = path.join(world.folder, 'data', 'files');
    const names = (await readdir(files, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
    for (const { parentPath, name } of names) await appendFile(path.join(parentPath, name), ' ');
    t.hasProp(await checkWorld(world), 'the artifact of a successful run is served with its digest');
  });
});
