import { randomUUID } from 'node:crypto';
import pg from 'pg';
import t from 'tap';
import { openAdmin } from '../../../../api/admin/instance.ts';
import { createLogger } from '../../../../engine/log.ts';
import { adminClient } from '../../../support/admin.ts';
import { sqlOf } from '../../../support/api_fixtures.ts';
import { startTestApp } from '../../../support/app.ts';
import { startProxy } from '../../../support/proxy.ts';
import { createTenant } from '../../../support/tenant.ts';
import { until } from '../../../support/wait.ts';

const app = await startTestApp(t);
const own = await createTenant(sqlOf(app));
const other = await createTenant(sqlOf(app));
const admin = adminClient(app);
const scoped = adminClient(app, own.organizationId);

const caller = { admin: 'tess', organizationId: null, requestId: randomUUID() };
const asked = (query: string) => ({ query, operationName: undefined, variables: {} });
const ignored = () => {};
const SCHEDULES = '{ schedules { nodes { id } } }';

/** With its schema built, for which the table that is held has to be looked at. */
async function open(requestTimeoutMs = 60_000) {
  const log = createLogger('silent', 'test');
  const onWakes = app.services.db.wake;
  const opened = openAdmin({ config: app.config, url: app.database.url, onWakes, log, requestTimeoutMs });
  t.teardown(() => opened.close());
  await opened.run(asked('{ __typename }'), caller, ignored).catch(ignored);
  return (query: string, gone?: AbortSignal) => opened.run(asked(query), caller, ignored, gone);
}

/** Nobody can read the schedules until it is called. */
async function holdSchedules(): Promise<() => Promise<void>> {
  const holder = new pg.Client({ connectionString: app.database.url });
  holder.on('error', ignored);
  t.teardown(() => holder.end());
  await holder.connect();
  await holder.query('begin; lock table app.schedules in access exclusive mode');
  return async () => {
    await holder.query('rollback');
  };
}

async function waitingForSchedules(): Promise<number> {
  const { rows } = await app.database.owner.query<{ n: number }>(
    `select count(*)::int as n from pg_locks where relation = 'app.schedules'::regclass and not granted`,
  );
  return rows[0]?.n ?? 0;
}

t.test('a response has 16 MiB at most, by what is read for it and by what it repeats', async (test) => {
  const config = (organizationId: string, mebibytes: number) =>
    app.database.owner.query(
      `update app.organizations set config = jsonb_build_object('x', repeat('x', $2 * 1024 * 1024)) where id = $1`,
      [organizationId, mebibytes],
    );
  await config(own.organizationId, 9);
  await config(other.organizationId, 9);
  const tooLarge = [{ extensions: { code: 'validation_failed', issues: [{ code: 'too_large' }] } }];
  const read = await admin.refused('{ organizations { nodes { config } } }');
  test.match([read.status, read.data], [200, { organizations: null }]);
  test.match(read.errors, tooLarge);
  test.equal(read.errors.length, 1);

  const one = await scoped.query<{ organizations: { nodes: [{ config: { x: string } }] } }>(
    '{ organizations { nodes { config } } }',
  );
  test.equal(one.organizations.nodes[0].config.x.length, 9 * 1024 * 1024);
  const repeated = await scoped.refused('{ organizations { nodes { a: config b: config } } }');
  test.match([repeated.status, repeated.data], [200, null]);
  test.match(repeated.errors, tooLarge);

  // Its connection is ended, and no other.
  const { schedules } = await admin.query('{ schedules { nodes { id } } }');
  test.ok(schedules);

  // A decision is told to be too long to show, and not to be refused.
  await config(own.organizationId, 17);
  const decided = await scoped.refused(
    `mutation { stopDispatch(organizationId: "${own.organizationId}") { auditEntryId organization { config } } }`,
  );
  test.equal(decided.status, 200);
  test.match(decided.errors, tooLarge);
  const { rows } = await app.database.owner.query(
    'select work_dispatch_stopped_at is not null as stopped from app.organizations where id = $1',
    [own.organizationId],
  );
  test.same(rows, [{ stopped: true }]);
  await config(own.organizationId, 0);
  await config(other.organizationId, 0);
});

t.test('a request that takes too long gets a response, although its statement goes on', async (test) => {
  const run = await open(100);
  const release = await holdSchedules();
  await test.rejects(run(SCHEDULES), { status: 503, code: 'service_unavailable' });
  await release();
});

t.test('once the client has left, nothing more is begun', async (test) => {
  const run = await open();
  const left = new AbortController();
  const release = await holdSchedules();
  const reading = run(SCHEDULES, left.signal);
  await until('readers wait for the schedules', async () => (await waitingForSchedules()) > 0);
  left.abort();
  await test.rejects(reading, { status: 503, message: /has left/ });
  const stop = `mutation { stopDispatch(organizationId: "${other.organizationId}") { auditEntryId } }`;
  await test.rejects(run(stop, left.signal), { status: 503, code: 'service_unavailable' });
  await release();
  test.match(await run(SCHEDULES), { status: 200, body: { data: { schedules: Object } } });
  const { rows } = await app.database.owner.query(
    'select work_dispatch_stopped_at as stopped from app.organizations where id = $1',
    [other.organizationId],
  );
  test.same(rows, [{ stopped: null }]);
});

t.test('four requests are served at once, some wait for their turn, and more fail at once', async (test) => {
  const run = await open();
  const release = await holdSchedules();
  const running = Array.from({ length: 4 }, () => run(SCHEDULES));
  await until('readers wait for the schedules', async () => (await waitingForSchedules()) === 4);
  const waiting = Array.from({ length: 64 }, () => run(SCHEDULES));
  await test.rejects(run(SCHEDULES), { name: 'DatabaseUnavailableError' });
  await release();
  for (const response of await Promise.all([...running, ...waiting])) test.equal(response.status, 200);
});

t.test('readers that fall silent are given up, and the next request has others', async (test) => {
  const proxy = await startProxy(test, app.database.url);
  const opened = openAdmin({
    config: app.config,
    url: proxy.url,
    onWakes: app.services.db.wake,
    log: createLogger('silent', 'test'),
    responseTimeoutMs: 5_000,
  });
  test.teardown(() => opened.close());
  const ask = () => opened.run(asked(SCHEDULES), caller, ignored);
  const all = () => Promise.all(Array.from({ length: 4 }, ask));
  for (const { body } of await all()) test.match(body, { data: { schedules: { nodes: [] } } });
  proxy.freezeExisting();
  for (const { body } of await all()) test.match(body, { errors: [{ extensions: { code: 'service_unavailable' } }] });
  for (const { body } of await all()) test.match(body, { data: { schedules: { nodes: [] } } });
});
