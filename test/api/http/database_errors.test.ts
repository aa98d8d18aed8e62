import { sql } from 'slonik';
import t from 'tap';
import { z } from 'zod';
import { uuid } from '../../../api/fields/ids.ts';
import { type Endpoint, endpoint } from '../../../api/http/endpoint.ts';
import { evaluate } from '../../../engine/db/call.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestDatabase } from '../../support/database.ts';
import { startProxy } from '../../support/proxy.ts';
import { until } from '../../support/wait.ts';
import { createOrganization } from './started_run.ts';

const data = z.looseObject({});
const body = z.strictObject({ what: z.string(), code: z.string().optional(), status: z.int().optional() });
const declared = [
  { status: 404, code: 'task_not_found', when: 'test' },
  { status: 409, code: 'chat_turn_active', when: 'test' },
];

/** The same call for each audience: the responses differ in their codes alone. */
const endpoints: readonly Endpoint[] = [
  endpoint({
    method: 'post',
    path: '/organizations/{organizationId}/probe',
    audience: 'owner',
    tag: 'System',
    operationId: 'probeOwner',
    summary: 'Probe',
    params: { organizationId: uuid },
    body,
    errors: declared,
    response: { data },
    handler: ({ db, body: { what, code, status } }) =>
      evaluate(db, sql.fragment`app.probe(${what}, ${code ?? null}, ${status ?? null})`, data),
  }),
  endpoint({
    method: 'post',
    path: '/organizations/{organizationId}/onboarding-probe',
    audience: 'owner',
    tag: 'System',
    operationId: 'probeOnboarding',
    summary: 'Probe of an endpoint that has codes of its own',
    params: { organizationId: uuid },
    body,
    codes: { 404: 'request_failed', 409: 'request_failed', 503: 'request_failed' },
    response: { data },
    handler: ({ db, body: { what, code, status } }) =>
      evaluate(db, sql.fragment`app.probe(${what}, ${code ?? null}, ${status ?? null})`, data),
  }),
  endpoint({
    method: 'post',
    path: '/internal/agent/organizations/{organizationId}/probe',
    audience: 'agent',
    tag: 'System',
    operationId: 'probeAgent',
    summary: 'Probe',
    params: { organizationId: uuid },
    body,
    response: { data },
    handler: ({ db, body: { what, code, status } }) =>
      evaluate(db, sql.fragment`app.probe(${what}, ${code ?? null}, ${status ?? null})`, data),
  }),
  endpoint({
    method: 'post',
    path: '/internal/probe',
    audience: 'worker',
    tag: 'System',
    operationId: 'probeWorker',
    summary: 'Probe',
    body,
    response: { data },
    handler: ({ db, body: { what, code, status } }) =>
      evaluate(db, sql.fragment`app.probe(${what}, ${code ?? null}, ${status ?? null})`, data),
  }),
];

const database = await createTestDatabase(t);
const proxy = await startProxy(t, database.url);
const app = await startTestApp(t, {
  endpoints,
  database,
  config: { databaseUrl: proxy.url, listenDatabaseUrl: proxy.url },
});
const organizationId = await createOrganization(app.services.db);

await database.owner.query(`
  create sequence app.probe_calls;
  create table app.probe_locks (id int primary key);
  insert into app.probe_locks values (1);
  create function app.probe(p_what text, p_code text, p_status int) returns jsonb language plpgsql security definer as $$
  begin
    if p_what = 'raise' then
      perform app.fail(p_status, p_code, 'A refusal', app.issue('field', 'lease_or_other', 'is wrong'));
    elsif p_what = 'return' then
      return jsonb_build_object('problem', jsonb_build_object('status', p_status, 'code', p_code, 'message', 'A refusal'));
    elsif p_what = 'third time lucky' then
      if nextval('app.probe_calls') % 3 <> 0 then raise exception 'again' using errcode = p_code; end if;
    elsif p_what = 'sqlstate' then
      perform nextval('app.probe_calls');
      raise exception 'secret detail' using errcode = p_code;
    elsif p_what = 'lock' then
      perform set_config('lock_timeout', '20ms', true);
      perform nextval('app.probe_calls');
      perform 1 from app.probe_locks for update;
    end if;
    return '{"done": true}';
  end $$;
  grant execute on function app.probe to runner_api`);

const owner = (what: object) => app.owner.post(`/organizations/${organizationId}/probe`, what);
const onboarding = (what: object) => app.owner.post(`/organizations/${organizationId}/onboarding-probe`, what);
const agent = (what: object) => app.service.post(`/internal/agent/organizations/${organizationId}/probe`, what);
const worker = (what: object) => app.service.post('/internal/probe', what);

async function calls(work: () => Promise<unknown>): Promise<number> {
  await database.owner.query(`select setval('app.probe_calls', 3)`);
  await work();
  const { rows } = await database.owner.query('select last_value::int as n from app.probe_calls');
  return rows[0].n - 3;
}

t.test('what a transition raises or returns becomes its status and code, with issues', async (t) => {
  for (const what of ['raise', 'return']) {
    const reply = await owner({ what, status: 404, code: 'task_not_found' });
    t.match(reply, { status: 404, code: 'task_not_found', body: { message: 'A refusal' } }, what);
  }
  const issues = (await owner({ what: 'raise', status: 409, code: 'chat_turn_active' })).body.error.issues;
  t.same(issues, [{ path: 'field', message: 'is wrong', code: 'lease_or_other' }]);
});

t.test('codes follow the audience', async (t) => {
  t.match(await agent({ what: 'raise', status: 404, code: 'task_not_found' }), { status: 404, code: 'not_found' });
  t.match(await agent({ what: 'raise', status: 409, code: 'chat_turn_active' }), {
    status: 409,
    code: 'state_conflict',
  });
  t.match(await agent({ what: 'raise', status: 403, code: 'forbidden' }), { status: 401, code: 'agent_unauthorized' });
  t.match(await agent({ what: 'raise', status: 400, code: 'validation_failed' }), {
    status: 400,
    code: 'validation_failed',
  });
  const refused = await agent({ what: 'raise', status: 401, code: 'agent_unauthorized' });
  t.match(refused.headers.get('www-authenticate'), /^Bearer/);

  for (const [status, code] of [
    [404, 'run_not_found'],
    [409, 'run_lease_expired'],
    [409, 'lease_lost'],
  ] as const) {
    const reply = await worker({ what: 'return', status, code });
    t.match(reply, { status: 409, code: 'run_lease_expired', body: { error: { issues: [{ code: 'lease_lost' }] } } });
  }
  for (const code of ['capacity', 'task_not_ready', 'differs']) {
    const reply = await worker({ what: 'return', status: 409, code });
    t.match(reply, { status: 409, code: 'run_lease_expired', body: { error: { issues: [{ code }] } } });
  }
  t.match(await onboarding({ what: 'raise', status: 404, code: 'organization_not_found' }), {
    status: 404,
    code: 'request_failed',
  });
  t.match(await onboarding({ what: 'raise', status: 400, code: 'validation_failed' }), {
    status: 400,
    code: 'validation_failed',
  });
});

t.test('deadlocks, serialization failures and lock time-outs are tried again, a bounded number of times', async (t) => {
  for (const code of ['40P01', '40001']) {
    t.match(await owner({ what: 'third time lucky', code }), { status: 200, data: { done: true } }, code);
    let reply: Awaited<ReturnType<typeof owner>> | undefined;
    const tries = await calls(async () => {
      reply = await owner({ what: 'sqlstate', code });
    });
    t.match(reply, { status: 503, code: 'service_unavailable' });
    t.ok(tries > 1 && tries <= 25, `${code}: ${tries} tries`);
  }
});

t.test('a row that stays locked is 503 after a second try, and one that comes free is not', async (t) => {
  const holder = await database.owner.connect();
  await holder.query('begin; select 1 from app.probe_locks for update');
  const tries = await calls(async () => {
    t.match(await owner({ what: 'lock' }), { status: 503, code: 'service_unavailable' });
  });
  t.equal(tries, 2);
  await holder.query('rollback');
  holder.release();
  t.match(await owner({ what: 'lock' }), { status: 200 });
});

t.test('statements that took too long, a full server and one that shuts down are 503 with Retry-After', async (t) => {
  for (const code of ['57014', '53300', '57P01', '57P03', '25006']) {
    const reply = await owner({ what: 'sqlstate', code });
    t.match(reply, { status: 503, code: 'service_unavailable' }, code);
    t.match(reply.headers.get('retry-after'), /^\d+$/);
  }
  t.match(await onboarding({ what: 'sqlstate', code: '57014' }), { status: 503, code: 'request_failed' });
});

t.test('text that slipped through to Postgres is 400; anything else unknown is 500 without detail', async (t) => {
  t.match(await owner({ what: 'sqlstate', code: '22021' }), { status: 400, code: 'validation_failed' });
  t.match(await owner({ what: 'sqlstate', code: '22P05' }), { status: 400, code: 'validation_failed' });
  for (const code of ['23505', '42P01', 'XX000', 'P0001', '22P02']) {
    const reply = await owner({ what: 'sqlstate', code });
    t.match(reply, { status: 500, code: 'internal_error' }, code);
    t.notMatch(JSON.stringify(reply.body), /secret detail/);
  }
});

t.test('while Postgres is down calls are 503, few lines are logged, and all recovers by itself', async (t) => {
  await until('ready', async () => (await app.owner.get('/readyz')).status === 200);
  proxy.cut();
  const before = app.logged.length;
  const replies = await Promise.all(Array.from({ length: 100 }, () => owner({ what: 'nothing' })));
  t.ok(replies.every((reply) => reply.status === 503 && reply.code === 'service_unavailable'));
  t.ok(replies.every((reply) => reply.headers.get('retry-after') !== null));
  t.match(await app.owner.get('/readyz'), { status: 503 });
  t.match(await app.owner.get('/healthz'), { status: 200 });
  const lines = app.logged.slice(before).filter((line) => line['level'] !== 'debug');
  t.ok(lines.length < 25, `${lines.length} lines for 100 failures`);
  t.ok(lines.some((line) => line['level'] === 'error'));
  proxy.restore();
  await until('works again', async () => (await owner({ what: 'nothing' })).status === 200);
  await until('ready again', async () => (await app.owner.get('/readyz')).status === 200);
});

t.test('a connection that is ended by the server is 503 once at most, never a half-made change', async (t) => {
  await Promise.all([owner({ what: 'nothing' }), owner({ what: 'nothing' })]);
  await database.owner.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'business-runner api'`,
  );
  const replies = await Promise.all(Array.from({ length: 10 }, () => owner({ what: 'nothing' })));
  for (const reply of replies) t.ok([200, 503].includes(reply.status), String(reply.status));
  await until('works again', async () => (await owner({ what: 'nothing' })).status === 200);
});
