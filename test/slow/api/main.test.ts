import t from 'tap';
import { type ApiProcess, startApi } from '../../support/api_process.ts';
import { startTestApp } from '../../support/app.ts';
import { createEmptyDatabase, createTestDatabase } from '../../support/database.ts';
import { createClient } from '../../support/http.ts';
import { makeOrganization, makeProfile, makeTask } from '../../support/owner_api.ts';
import { startProxy } from '../../support/proxy.ts';
import { until } from '../../support/wait.ts';

const database = await createTestDatabase(t);

/** Of its METRICS_PORT, as it says in its log. */
function metricsUrl({ output }: ApiProcess): string {
  return /"url":"([^"]+)","msg":"metrics are served"/.exec(output())?.[1] ?? '';
}

t.test('it says ready over IPC, serves, and ends on SIGTERM after what is under way', async (t) => {
  const api = await startApi(t, { DATABASE_URL: database.url });
  t.match(api.url, /^http:\/\/127\.0\.0\.1:\d+$/);
  const client = createClient(api.url);
  await until('ready', async () => (await client.get('/readyz')).status === 200);
  t.match(await (await client.fetch('/metrics')).text(), /process_cpu_user_seconds_total/);
  const idle = await client.fetch('/healthz');
  await idle.bytes();

  const locker = await database.owner.connect();
  await locker.query('begin; lock table app.schema_migrations');
  const underWay = client.get('/readyz');
  await until('it waits for the lock', async () => {
    const { rows } = await database.owner.query(
      `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows.length > 0;
  });
  api.child.kill('SIGTERM');
  await until('it stops accepting', () =>
    client.get('/healthz').then(
      () => false,
      () => true,
    ),
  );
  await locker.query('rollback');
  locker.release();
  t.match(await underWay, { status: 200 });
  const responded = Date.now();
  t.equal(await api.exit, 0);
  t.ok(Date.now() - responded < 4_000, 'the kept-alive connection does not hold it up');
  t.match(api.output(), /"msg":"the API listens"/);
});

t.test('METRICS_PORT serves the metrics to all who reach it, the port of the API does not', async (t) => {
  const proxied = { headers: { 'x-forwarded-for': '203.0.113.9' } };
  const api = await startApi(t, { DATABASE_URL: database.url, METRICS_PORT: '0' });
  const own = metricsUrl(api);
  t.match(own, /^http:\/\/127\.0\.0\.1:\d+$/);
  t.not(own, api.url);
  const served = await fetch(`${own}/metrics`, proxied);
  t.equal(served.status, 200);
  t.match(await served.text(), /^runner_run_requests\b/m, 'the same ones as the API');
  t.equal((await fetch(`${own}/healthz`, proxied)).status, 200);
  t.equal((await fetch(`${own}/organizations`, proxied)).status, 404, 'and nothing else');
  const refused = await fetch(`${api.url}/metrics`, proxied);
  t.equal(refused.status, 401);
  t.match(await refused.json(), { error: { code: 'metrics_unauthorized' } });

  const token = 'metrics-token-of-the-tests-0123456789';
  const [guarded, taken, none] = await Promise.all([
    startApi(t, { DATABASE_URL: database.url, METRICS_PORT: '0', METRICS_TOKENS: token }),
    startApi(t, { DATABASE_URL: database.url, METRICS_PORT: new URL(own).port }),
    startApi(t, { DATABASE_URL: database.url }),
  ]);
  for (const base of [metricsUrl(guarded), guarded.url]) {
    t.equal((await fetch(`${base}/metrics`)).status, 401, 'with tokens also on loopback');
    t.equal((await fetch(`${base}/metrics`, { headers: { authorization: `Bearer ${token}` } })).status, 200);
  }
  t.equal(await taken.exit, 1);
  t.match(taken.output(), /EADDRINUSE/);
  t.notMatch(none.output(), 'metrics are served');
});

t.test('it ends when the process that started it is gone', async (t) => {
  const api = await startApi(t, { DATABASE_URL: database.url });
  api.child.disconnect();
  t.equal(await api.exit, 0);
});

t.test('it starts while Postgres is down, and recovers', async (t) => {
  const proxy = await startProxy(t, database.url);
  proxy.cut();
  const api = await startApi(t, { DATABASE_URL: proxy.url });
  const client = createClient(api.url);
  t.match(await client.get('/healthz'), { status: 200 });
  t.match(await client.get('/readyz'), { status: 503 });
  proxy.restore();
  await until('ready', async () => (await client.get('/readyz')).status === 200);
  proxy.freeze();
  api.child.kill('SIGTERM');
  const began = Date.now();
  t.equal(await api.exit, 0);
  t.ok(Date.now() - began < 9_000, 'it ends although Postgres does not respond');
});

t.test('the schema of the administration is made before it listens, or when Postgres is back', async (t) => {
  const token = 'admin-token-of-the-tests-0123456789';
  const proxy = await startProxy(t, database.url);
  const query = async (api: ApiProcess) =>
    createClient(api.url)
      .as(token)
      .fetch('/internal/admin/graphql', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"query": "{ __typename }"}',
      });
  const api = await startApi(t, { DATABASE_URL: proxy.url, ADMIN_TOKENS: token });
  const listens = (one: ApiProcess) => until('it says so', () => one.output().includes('the API listens'));
  await listens(api);
  t.match(api.output(), /the administration is ready.*the API listens/s);
  t.equal((await query(api)).status, 200);

  proxy.cut();
  const early = await startApi(t, { DATABASE_URL: proxy.url, ADMIN_TOKENS: token });
  await listens(early);
  t.match(early.output(), /the administration is not ready yet.*the API listens/s);
  proxy.restore();
  await until('it is made', () => early.output().includes('the administration is ready'));
  t.equal((await query(early)).status, 200);
  const none = await startApi(t, { DATABASE_URL: database.url });
  t.notMatch(none.output(), 'the administration');
});

t.test('a database that is not migrated ends it with what to run', async (t) => {
  const empty = await createEmptyDatabase(t);
  const api = await startApi(t, { DATABASE_URL: empty.url, LOG_LEVEL: 'silent' });
  t.equal(await api.exit, 78);
  t.equal(api.output(), 'the database is not migrated; run: node scripts/migrate.ts\n');
});

t.test('and so does one that is behind', async (t) => {
  const old = await createTestDatabase(t);
  await old.owner.query(
    'delete from app.schema_migrations where version = (select max(version) from app.schema_migrations)',
  );
  const api = await startApi(t, { DATABASE_URL: old.url, LOG_LEVEL: 'silent' });
  t.equal(await api.exit, 78);
  t.match(api.output(), /^the database is at migration \d+, and \d+ is needed; run: node scripts\/migrate\.ts\n$/);
});

t.test('a wrong setting, and a port in use, end it with one line', async (t) => {
  const [wrong, missing, first] = await Promise.all([
    startApi(t, { DATABASE_URL: database.url, LOG_LEVEL: 'loud' }),
    startApi(t, {}),
    startApi(t, { DATABASE_URL: database.url }),
  ]);
  t.equal(await wrong.exit, 78);
  t.match(wrong.output(), /^LOG_LEVEL: must be [^\n]*\n$/);
  t.equal(await missing.exit, 78);
  t.match(missing.output(), /^DATABASE_URL: [^\n]*\n$/);
  const second = await startApi(t, { DATABASE_URL: database.url, PORT: new URL(first.url).port });
  t.equal(await second.exit, 1);
  t.match(second.output(), /EADDRINUSE/);
});

t.test('one that is frozen inside a transaction keeps its locks for seconds, and goes on afterwards', async (t) => {
  const api = await startApi(t, { DATABASE_URL: database.url });
  const other = await startTestApp(t, { database });
  const organization = await makeOrganization(other.owner);
  const task = await makeTask(other.owner, await makeProfile(other.owner, organization.id));
  const cancel = `/organizations/${organization.id}/tasks/${task.id}/cancel`;
  // It waits for the task in one transaction with its key.
  const locker = await database.owner.connect();
  await locker.query('begin');
  await locker.query('select from app.tasks where id = $1 for update', [task.id]);
  const keyed = () => createClient(api.url).post(cancel, {}, { headers: { 'Idempotency-Key': 'frozen' } });
  const frozen = keyed();
  const backend = async (condition: string) => {
    const { rows } = await database.owner.query<{ pid: number }>(
      `select pid from pg_stat_activity where datname = current_database() and ${condition}`,
    );
    return rows[0]?.pid;
  };
  const pid = await until('it waits for the task', () => backend(`wait_event_type = 'Lock'`));
  api.child.kill('SIGSTOP');
  await locker.query('rollback');
  locker.release();
  await until('it has the task', () => backend(`pid = ${pid} and state = 'idle in transaction'`));

  t.match(await other.owner.post(cancel, {}), { status: 200, data: { status: 'cancelled' } });
  api.child.kill('SIGCONT');
  t.match(await frozen, { status: 503, code: 'service_unavailable' });
  t.match(await keyed(), { status: 200, data: { status: 'cancelled' } });
});
