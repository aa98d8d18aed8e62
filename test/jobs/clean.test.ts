import { randomUUID } from 'node:crypto';
import { mkdir, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { createTestOrganization, runNew } from '../support/fixtures.ts';
import { account, allow, beginFlow, createConnected, resolveGateway } from '../support/integration_fixtures.ts';
import { openSql } from '../support/transitions.ts';
import { until } from '../support/wait.ts';
import { addJob, openJobs, queued } from './support.ts';

const sql = await openSql(t);
const jobs = await openJobs(t, sql.url);

async function run(task: string, payload: unknown = {}): Promise<void> {
  await addJob(sql.owner, task, payload, task);
  await until(`${task} has run`, async () => (await queued(sql.owner, task)).every((job) => job.last_error !== null));
}

t.test('idempotency keys go after a day, all of them, and no other', async (t) => {
  await sql.owner.query(
    `insert into app.idempotency_keys (organization_id, caller, method, path, key, body_hash, created_at)
     select $1, 'test', 'POST', '/tasks', 'key ' || n, 'hash', now() - case when n <= 2100 then interval '25 hours' else interval '23 hours' end
     from generate_series(1, 2103) n`,
    [randomUUID()],
  );
  await run('idempotency_keys__clean');
  const { rows } = await sql.owner.query('select key from app.idempotency_keys order by key');
  t.same(rows, [{ key: 'key 2101' }, { key: 'key 2102' }, { key: 'key 2103' }]);
});

t.test('flows and capabilities go an hour after their end, all of them, and no other', async (t) => {
  const org = await createTestOrganization(sql);
  const { id } = await createConnected(sql, org, { provider: 'google-workspace' }, account('acme', { kind: 'oauth2' }));
  await allow(sql, org, 'integrations.read');
  const { runId } = await runNew(sql, org);
  for (let n = 0; n < 2; n += 1) {
    await beginFlow(sql, org, id);
    await resolveGateway(sql, org, id, { runId });
  }
  const rows = async () => {
    const { rows: found } = await sql.owner.query(
      `select (select count(*)::integer from app.integration_oauth_states) as flows,
         (select count(*)::integer from app.integration_gateway_capabilities) as capabilities`,
    );
    return found[0];
  };
  await run('integrations__clean');
  t.same(await rows(), { flows: 2, capabilities: 2 });
  // More than a batch, of which each ended an hour ago.
  await sql.owner.query(
    `update app.integration_oauth_states set expires_at = now() - interval '61 minutes'
     where id = (select min(id::text)::uuid from app.integration_oauth_states)`,
  );
  await sql.owner.query(
    `insert into app.integration_gateway_capabilities (organization_id, token_hash, integration_id, agent_profile_id,
       run_id, kind, connection_revision, authorization_epoch, expires_at)
     select g.organization_id, md5(n::text) || md5(n::text), g.integration_id, g.agent_profile_id, g.run_id, g.kind, 1, 1,
       now() - interval '61 minutes'
     from generate_series(1, 1100) n, (select * from app.integration_gateway_capabilities limit 1) g`,
  );
  await run('integrations__clean');
  t.same(await rows(), { flows: 1, capabilities: 2 });
});

t.test('budgets go once they are full for an hour, unless the provider asked to be left alone', async (t) => {
  await sql.owner.query(
    `insert into app.rate_limit_buckets (key, full_at, retry_not_before)
     select 'full ' || n, now() - interval '61 minutes', null::timestamptz from generate_series(1, 2100) n
     union all select 'used', now() - interval '59 minutes', null
     union all select 'held', now() - interval '61 minutes', now() + interval '1 hour'`,
  );
  await run('rate_limits__clean');
  const { rows } = await sql.owner.query('select key from app.rate_limit_buckets order by key');
  t.same(rows, [{ key: 'held' }, { key: 'used' }]);
});

t.test('uploads that nobody will finish go after a day', async (t) => {
  await jobs.storage.put('a/b', (async function* () {})());
  const incoming = path.join(fileURLToPath(jobs.storageUrl), '.incoming');
  await mkdir(incoming, { recursive: true });
  const yesterday = new Date(Date.now() - 25 * 3_600_000);
  for (const name of ['old', 'new']) await writeFile(path.join(incoming, name), 'half');
  await utimes(path.join(incoming, 'old'), yesterday, yesterday);
  await run('storage__clean');
  t.ok(jobs.logged.some(({ msg, removed }) => msg === 'abandoned uploads are removed' && removed === 1));
  t.same(await jobs.storage.stat('a/b'), { size: 0 });
});

t.test('a job with a wrong payload fails with its id in the log, and is kept', async (t) => {
  await run('organizations__delete', { organizationId: 'none' });
  const [job] = await queued(sql.owner, 'organizations__delete');
  t.match(job?.last_error, /^wrong payload of organizations__delete: /);
  t.match(
    jobs.logged.find((line) => line['jobId'] === job?.id),
    { level: 'error', msg: 'a job failed and will run again', task: 'organizations__delete', attempt: 1 },
  );
});

t.test('jobs that nobody will run are told', async (t) => {
  await sql.owner.query(`select graphile_worker.add_job('mistyped', run_at => now() - interval '1 hour')`);
  await sql.owner.query(`select graphile_worker.add_job('mistyped_now')`);
  await sql.owner.query(
    `update graphile_worker._private_jobs set attempts = max_attempts where last_error is not null`,
  );
  // Replaced while it ran, and then failed: as the queue leaves it.
  await sql.owner.query(`select graphile_worker.add_job('storage__clean', run_at => now() + interval '1 hour')`);
  await sql.owner.query(
    `update graphile_worker._private_jobs j set attempts = j.max_attempts, last_error = 'it failed'
     from graphile_worker.jobs l where l.id = j.id and l.task_identifier = 'storage__clean'`,
  );
  await run('runner__check');
  t.same(await queued(sql.owner, 'storage__clean'), [], 'its successor did the work');
  const told = jobs.logged.filter(({ msg }) => msg.startsWith('jobs w'));
  t.equal(told.length, 2);
  t.match(
    told.find(({ task }) => task === 'mistyped'),
    { level: 'error', jobs: 1, msg: 'jobs wait whose task this version does not have' },
  );
  t.match(
    told.find(({ task }) => task === 'organizations__delete'),
    { level: 'error', jobs: 1, msg: /^jobs were given up/ },
  );
});
