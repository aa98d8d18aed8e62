import t from 'tap';
import { openJobs, queued, spawnJobs } from '../../../jobs/support.ts';
import { createTestOrganization, endLease, lastRequest, runNew } from '../../../support/fixtures.ts';
import { openSql } from '../../../support/transitions.ts';
import { until } from '../../../support/wait.ts';

const sql = await openSql(t);

/** The value of a metric, by its name and labels as they are printed. */
const valueIn = (text: string, metric: string) => {
  const line = text.split('\n').find((one) => one.startsWith(`${metric} `));
  return line === undefined ? undefined : Number(line.slice(metric.length + 1));
};

t.test('metrics of the jobs: leases that end, jobs that are done, wait, fail and are given up', async (t) => {
  const jobs = await openJobs(t, sql.url);
  const value = async (metric: string) => valueIn(await jobs.registry.metrics(), metric);
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await endLease(sql, run);
  await until('the lease has expired', async () => (await lastRequest(sql, org, run.taskId)).state === 'queued');
  const expiries = 'runner_lease_expiries_total{outcome="expired"}';
  await until('it is counted', async () => (await value(expiries)) === 1);

  const { rows } = await sql.owner.query(`
    select graphile_worker.add_job('runner__check', job_key => 'check') as done,
      graphile_worker.add_job('chats__clean', '{"wrong": 1}', job_key => 'broken', max_attempts => 1) as over,
      graphile_worker.add_job('chats__clean', '{"wrong": 1}', job_key => 'fails') as failed,
      graphile_worker.add_job('of_a_newer_version', job_key => 'newer') as unknown`);
  t.equal(rows.length, 1);
  for (const [task, outcome] of [
    ['runner__check', 'done'],
    ['chats__clean', 'given_up'],
    ['chats__clean', 'failed'],
  ]) {
    const metric = `runner_jobs_ended_total{task="${task}",outcome="${outcome}"}`;
    await until(metric, async () => Number(await value(metric)) >= 1);
  }
  t.equal(await value('runner_job_delay_seconds_count{task="runner__check"}'), 1);
  // Read at most every five seconds: what the first read saw is gone by then.
  await until('one is given up', async () => (await value('runner_jobs_given_up{task="chats__clean"}')) === 1);
  t.equal(await value('runner_jobs_waiting{task="other"}'), 1, 'nobody takes it');
  t.ok(Number(await value('runner_jobs_oldest_seconds{task="other"}')) > 0);
  t.notMatch(await jobs.registry.metrics(), 'of_a_newer_version');
  await sql.owner.query(
    `select graphile_worker.complete_jobs(array_agg(id)) from graphile_worker.jobs where key <> 'dispatch'`,
  );
});

t.test('a job process is ready while it takes jobs and its database responds, and says so at JOBS_PORT', async (t) => {
  const process = await spawnJobs(t, sql.url, { JOBS_PORT: '0' });
  const url = await until('it says where', () => /"url":"(http:[^"]+)"/.exec(process.output())?.[1]);
  t.equal((await fetch(`${url}/healthz`)).status, 200);
  t.equal((await fetch(`${url}/readyz`)).status, 200);
  const metrics = await (await fetch(`${url}/metrics`)).text();
  t.match(metrics, /^process_cpu_user_seconds_total /m);
  t.ok(Number(valueIn(metrics, 'runner_job_delay_seconds_count{task="dispatch"}')) >= 1);
  t.equal((await queued(sql.owner, 'dispatch')).length > 0, true);

  const inUse = await spawnJobs(t, sql.url, { JOBS_PORT: new URL(url).port }).catch((error: Error) => error.message);
  t.match(inUse, /was not ready: .*EADDRINUSE/s);
  await process.kill('SIGTERM');
  await t.rejects(fetch(`${url}/healthz`));
});

t.test('one that cannot take jobs is not ready', async (t) => {
  const jobs = await openJobs(t, sql.url);
  t.equal(await jobs.notReady(), undefined);
  await sql.owner.query('revoke select on app.schema_migrations from runner_jobs');
  t.equal(await jobs.notReady(), 'The database does not respond.');
  await sql.owner.query('grant select on app.schema_migrations to runner_jobs');
  t.equal(await jobs.notReady(), undefined);
  await jobs.stop();
  t.match(await jobs.notReady(), /^No jobs are taken/);
});
