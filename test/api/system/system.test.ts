import t from 'tap';
import { startTestApp } from '../../support/app.ts';
import { until } from '../../support/wait.ts';
import { sampleEndpoints } from '../http/endpoints.ts';

const app = await startTestApp(t, { endpoints: sampleEndpoints() });

t.test('ready means: the database responds, is migrated, and notifications arrive', async (t) => {
  await until('ready', async () => (await app.owner.get('/readyz')).status === 200);
  const { rows } = await app.database.owner.query('select max(version) as version from app.schema_migrations');
  t.match(await app.owner.get('/readyz'), { data: { status: 'ready', schemaVersion: rows[0].version } });

  await app.database.owner.query('delete from app.schema_migrations where version = $1', [rows[0].version]);
  const behind = await app.owner.get('/readyz');
  t.match(behind, { status: 503, code: 'service_unavailable', body: { message: /npm run migrate/ } });
  t.ok(behind.headers.get('retry-after'));
  await app.database.owner.query(
    `insert into app.schema_migrations (version, name, sha256) values ($1, 'x', 'x'), ($1 + 1, 'y', 'y')`,
    [rows[0].version],
  );
  t.match(await app.owner.get('/readyz'), { status: 200 }, 'a newer database serves old processes during a release');
  t.match(await app.owner.get('/healthz'), { status: 200, data: { status: 'ok' } });
});

t.test('metrics count by route template, never by the path that was sent', async (t) => {
  for (const thing of ['one', 'two'])
    await app.owner.get(`/organizations/018f3c1e-7a2b-7c3d-8e4f-5a6b7c8d9e0f/things/${thing}`);
  await app.owner.get('/some/unknown/path');
  const response = await app.owner.fetch('/metrics');
  t.match(response.headers.get('content-type'), /^text\/plain; version=0\.0\.4/);
  const text = await response.text();
  const route = 'route="/organizations/{organizationId}/things/{thing}"';
  t.match(text, `http_request_duration_seconds_count{method="GET",${route},status="200"} 2`);
  t.match(text, 'http_request_duration_seconds_count{method="GET",route="unmatched",status="404"} 1');
  t.notMatch(text, /018f3c1e|unknown/);
  t.match(text, /^runner_pull_waiters 0$/m);
  t.match(text, /^runner_run_requests\{kind="task",state="ready"\} 0$/m);
  t.match(text, /^runner_database_statements\{state="waiting"\} 0$/m);
});

t.test('every response carries the security headers', async (t) => {
  for (const path of ['/healthz', '/nowhere', '/docs', '/openapi.json']) {
    const { headers } = await app.owner.fetch(path);
    t.equal(headers.get('x-content-type-options'), 'nosniff', path);
    t.match(headers.get('content-security-policy'), /default-src 'none'.*frame-ancestors 'none'/, path);
    t.ok(headers.get('x-request-id'), path);
  }
});
