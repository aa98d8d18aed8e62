import t from 'tap';
import { addJob, dispatching, openJobs, queued, spawnJobs } from '../../../jobs/support.ts';
import { createTask, createTestOrganization, taskRow } from '../../../support/fixtures.ts';
import { openSql } from '../../../support/transitions.ts';
import { until } from '../../../support/wait.ts';

const sql = await openSql(t);

/** The backends that hold the lock of a pool. */
async function lifelines(pool: string): Promise<number[]> {
  const { rows } = await sql.owner.query(
    `select pid from pg_locks cross join hashtextextended($1, 42) key
     where locktype = 'advisory' and granted and objsubid = 1
       and classid::bigint = ((key >> 32) & 4294967295) and objid::bigint = (key & 4294967295)
       and database = (select oid from pg_database where datname = current_database())`,
    [pool],
  );
  return rows.map((row) => row.pid);
}

/** When this database's processes last judged the owners of jobs. */
async function looks(): Promise<Map<number, number>> {
  const { rows } = await sql.owner.query(
    `select pid, query_start from pg_stat_activity
     where datname = current_database() and query like '%pg_try_advisory_xact_lock%' and pid <> pg_backend_pid()`,
  );
  return new Map(rows.map((row) => [row.pid, row.query_start.getTime()]));
}

async function scheduleSoon() {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org, { scheduledAt: new Date(Date.now() + 100).toISOString() });
  return () => until('due work is moved', async () => (await taskRow(sql, org, task.id)).status === 'pending');
}

t.test('when the process that dispatches is killed, another takes over within seconds', async (t) => {
  const both = await Promise.all([spawnJobs(t, sql.url), spawnJobs(t, sql.url)]);
  const pool = await dispatching(sql.owner);
  const dead = both.find(({ output }) => output().includes(pool));
  const alive = both.find((one) => one !== dead);
  if (!dead || !alive) throw new Error('no process has the pool that dispatches');
  await until('the survivor watches', async () => (await looks()).size === 2);
  await dead.kill('SIGKILL');
  const killedAt = Date.now();
  const next = await dispatching(sql.owner, (owner) => owner !== pool);
  t.comment(`taken over after ${Date.now() - killedAt} ms`);
  t.ok(Date.now() - killedAt < 10_000);
  t.match(await queued(sql.owner, 'dispatch'), [{ locked_by: next, attempts: 2 }], 'the same job, once more');
  await (await scheduleSoon())();
  t.match(alive.output(), 'the jobs of a process that died run again');

  const stopped = Date.now();
  t.equal(await alive.kill('SIGTERM'), 0, 'and the survivor stops when it is told to');
  t.ok(Date.now() - stopped < 5_000);
  t.match(
    await queued(sql.owner, 'dispatch'),
    [{ locked_by: null, attempts: 0 }],
    'leaving dispatch to the next start',
  );
});

t.test('a live process whose lock is lost takes it again, and keeps its jobs', async (t) => {
  const [first, second] = [await openJobs(t, sql.url), await openJobs(t, sql.url)];
  await until('both watch', async () => (await looks()).size === 2);
  const pool = await dispatching(sql.owner);
  const [lost = 0] = await until('it has its lock', async () => {
    const pids = await lifelines(pool);
    return pids.length > 0 && pids;
  });
  await sql.owner.query('select pg_terminate_backend($1)', [lost]);
  const lostAt = Date.now();
  await until('it has its lock again', async () => (await lifelines(pool)).some((pid) => pid !== lost));
  // Longer than a dead one would be spared.
  await until('the other one has judged', async () => [...(await looks()).values()].some((at) => at > lostAt + 3_500));
  t.match(await queued(sql.owner, 'dispatch'), [{ locked_by: pool, attempts: 1 }]);
  for (const { logged } of [first, second]) {
    t.notOk(logged.some(({ msg }) => msg === 'the jobs of a process that died run again'));
  }
});

t.test(
  'of the jobs of a dead process, those that were replaced while they ran end, and the others run again',
  async (t) => {
    const dead = 'a pool that has gone';
    for (const key of ['replaced', 'exhausted', 'interrupted']) await addJob(sql.owner, 'runner__check', {}, key);
    const taken = `update graphile_worker._private_jobs set locked_by = $2, locked_at = now(), attempts = 1 where key = $1`;
    for (const key of ['replaced', 'exhausted', 'interrupted']) await sql.owner.query(taken, [key, dead]);
    // What the queue itself makes of a job that is added again while it is locked.
    await addJob(sql.owner, 'runner__check', {}, 'replaced');
    await sql.owner.query(`update graphile_worker._private_jobs set attempts = max_attempts where key = 'exhausted'`);
    t.match(
      await queued(sql.owner, 'runner__check'),
      [
        { key: null, attempts: 25, locked_by: dead },
        { key: 'exhausted', attempts: 25, locked_by: dead },
        { key: 'interrupted', attempts: 1, locked_by: dead },
        { key: 'replaced', attempts: 0, locked_by: null },
      ],
      'as the queue leaves them',
    );
    await openJobs(t, sql.url);
    await until('only the one that used up its attempts is left', async () => {
      const left = await queued(sql.owner, 'runner__check');
      return left.length === 1 && left[0]?.key === 'exhausted' && left[0].locked_by === null;
    });
  },
);
