import { randomUUID } from 'node:crypto';
import { sql } from 'slonik';
import t from 'tap';
import { z } from 'zod';
import { apiEndpoints } from '../../../api/app.ts';
import { uuid } from '../../../api/fields/ids.ts';
import { takesIdempotencyKey } from '../../../api/http/declared_errors.ts';
import { type Endpoint, endpoint, isStream } from '../../../api/http/endpoint.ts';
import { evaluate } from '../../../engine/db/call.ts';
import { startTestApp } from '../../support/app.ts';
import { createOrganization, startRun } from './started_run.ts';

const counted = z.object({ count: z.int(), name: z.string() });
const body = z.strictObject({ name: z.string(), refuse: z.boolean().optional() });

const parts = { tag: 'System', summary: 'Counts its calls', body, params: { organizationId: uuid } } as const;
const errors = [{ status: 409, code: 'state_conflict', when: 'refuse' }];
const endpoints: readonly Endpoint[] = [
  endpoint({
    ...parts,
    method: 'post',
    path: '/organizations/{organizationId}/counts',
    audience: 'owner',
    operationId: 'count',
    errors,
    response: { status: 201, data: counted, message: 'Counted.' },
    handler: ({ db, body }) =>
      evaluate(db, sql.fragment`app.probe_count(${body.name}, ${body.refuse ?? null})`, counted),
  }),
  endpoint({
    ...parts,
    method: 'post',
    path: '/organizations/{organizationId}/other-counts',
    audience: 'owner',
    operationId: 'countElsewhere',
    response: { status: 202, data: counted },
    handler: ({ db, body }) =>
      evaluate(db, sql.fragment`app.probe_count(${body.name}, ${body.refuse ?? null})`, counted),
  }),
  endpoint({
    ...parts,
    method: 'post',
    path: '/internal/agent/organizations/{organizationId}/counts',
    audience: 'agent',
    operationId: 'countAgent',
    response: { data: counted },
    handler: ({ db, body }) =>
      evaluate(db, sql.fragment`app.probe_count(${body.name}, ${body.refuse ?? null})`, counted),
  }),
  endpoint({
    tag: 'System',
    summary: 'Counts without an organization',
    body,
    method: 'post',
    path: '/counts',
    audience: 'owner',
    operationId: 'countAnywhere',
    response: { data: counted },
    handler: ({ db, body }) =>
      evaluate(db, sql.fragment`app.probe_count(${body.name}, ${body.refuse ?? null})`, counted),
  }),
  endpoint({
    tag: 'System',
    summary: 'Counts for a worker',
    body,
    method: 'post',
    path: '/internal/runs/count',
    audience: 'worker',
    operationId: 'countWorker',
    response: { data: counted },
    handler: ({ db, body }) =>
      evaluate(db, sql.fragment`app.probe_count(${body.name}, ${body.refuse ?? null})`, counted),
  }),
];

const app = await startTestApp(t, { endpoints });
const organizationId = await createOrganization(app.services.db);
await app.database.owner.query(`
  create table app.probe_counts (name text primary key, count int not null);
  create function app.probe_count(p_name text, p_refuse boolean) returns jsonb language plpgsql security definer as $$
  declare v_count int;
  begin
    insert into app.probe_counts values (p_name, 1)
      on conflict (name) do update set count = app.probe_counts.count + 1 returning count into v_count;
    if p_refuse then perform app.fail(409, 'state_conflict', 'Refused'); end if;
    return jsonb_build_object('count', v_count, 'name', p_name);
  end $$;
  grant execute on function app.probe_count to runner_api`);

const path = `/organizations/${organizationId}/counts`;
const keyed = (key: string) => ({ headers: { 'idempotency-key': key } });

async function count(name: string): Promise<number> {
  const { rows } = await app.database.owner.query('select count from app.probe_counts where name = $1', [name]);
  return rows[0]?.count ?? 0;
}

t.test('the first success is returned again, and the work is done once', async (t) => {
  const name = randomUUID();
  const first = await app.owner.post(path, { name }, keyed(`k ${name}`));
  t.match(first, { status: 201, data: { count: 1, name } });
  t.equal(first.headers.get('idempotency-replayed'), null);
  const again = await app.owner.send('POST', path, `{ "name" :"${name}"}`, {
    headers: { 'idempotency-key': `k ${name}`, 'content-type': 'application/json' },
  });
  t.match(again, { status: 201, data: { count: 1, name }, body: { message: 'Counted.' } });
  t.equal(again.headers.get('idempotency-replayed'), 'true');
  t.not(again.body.meta.requestId, first.body.meta.requestId, 'the ids are those of this request');
  const shouted = await app.owner.post(
    path.replace(organizationId, organizationId.toUpperCase()),
    { name },
    keyed(`k ${name}`),
  );
  t.equal(shouted.headers.get('idempotency-replayed'), 'true', 'an id in upper case is the same one');
  t.equal(await count(name), 1);
  await app.owner.post(path, { name });
  t.equal(await count(name), 2, 'without a key each call counts');
});

t.test('what posts of owners and agents ignore a key: those whose response must not be kept', (t) => {
  const posts = apiEndpoints().filter(({ method, audience, body }) => {
    return method === 'post' && /^(?:owner|agent)$/.test(audience) && !isStream(body);
  });
  const names = posts.filter((one) => !takesIdempotencyKey(one)).map(({ operationId }) => operationId);
  t.same(names.sort(), [
    'listIntegrationResources',
    'listIntegrationStores',
    'resolveIntegration',
    'startGithubAuthorization',
    'startGoogleAnalyticsAuthorization',
    'startGoogleWorkspaceAuthorization',
    'startMcpAuthorization',
    'startXAdsAuthorization',
  ]);
  t.end();
});

t.test('twenty at once do the work once', async (t) => {
  const name = randomUUID();
  const replies = await Promise.all(Array.from({ length: 20 }, () => app.owner.post(path, { name }, keyed(name))));
  t.ok(replies.every((reply) => reply.status === 201 && reply.data['count'] === 1));
  t.equal(replies.filter((reply) => reply.headers.get('idempotency-replayed') === null).length, 1);
  t.equal(await count(name), 1);
});

t.test('the same key with another body is 409, and changes nothing', async (t) => {
  const name = randomUUID();
  await app.owner.post(path, { name }, keyed(name));
  const other = await app.owner.post(path, { name, refuse: false }, keyed(name));
  t.match(other, { status: 409, code: 'idempotency_key_reused' });
  const query = await app.owner.post(`${path}?x=1`, { name }, keyed(name));
  t.match(query, { status: 400 });
  t.equal(await count(name), 1);
  const agents = `/internal/agent/organizations/${organizationId}/counts`;
  await app.service.post(agents, { name }, keyed(name));
  t.match(await app.service.post(agents, { name: 'other' }, keyed(name)), {
    status: 409,
    code: 'idempotency_key_reused',
  });
});

t.test('a refusal keeps nothing: the key is free for a better try', async (t) => {
  const name = randomUUID();
  const refused = await app.owner.post(path, { name, refuse: true }, keyed(name));
  t.match(refused, { status: 409, code: 'state_conflict' });
  t.equal(await count(name), 0, 'the change is undone');
  t.match(await app.owner.post(path, { name: 'x'.repeat(3), foreign: 1 }, keyed(name)), { status: 400 });
  t.match(await app.owner.post(path, { name }, keyed(name)), { status: 201, data: { count: 1 } });
});

t.test('keys belong to a caller, an organization, a method and a path', async (t) => {
  const name = randomUUID();
  const other = await createOrganization(app.services.db);
  const run = await startRun(app.services.db);
  const agents = `/internal/agent/organizations/${run.organizationId}/counts`;
  const replies = [
    await app.owner.post(path, { name }, keyed(name)),
    await app.owner.post(`/organizations/${other}/counts`, { name }, keyed(name)),
    await app.owner.post(`/organizations/${organizationId}/other-counts`, { name }, keyed(name)),
    await app.service.post(agents, { name }, keyed(name)),
    await app.owner.as(run.executionToken).post(agents, { name }, keyed(name)),
    await app.owner.post('/counts', { name }, keyed(name)),
  ];
  t.same(
    replies.map((reply) => reply.data['count']),
    [1, 2, 3, 4, 5, 6],
  );
  t.match(await app.owner.post('/counts', { name }, keyed(name)), { data: { count: 6 } });
  t.match(await app.owner.post(`/organizations/${organizationId}/other-counts`, { name }, keyed(name)), {
    status: 202,
    data: { count: 3 },
  });
});

t.test('worker calls are repeatable by themselves: the key is ignored', async (t) => {
  const name = randomUUID();
  await app.service.post('/internal/runs/count', { name }, keyed(name));
  await app.service.post('/internal/runs/count', { name }, keyed(name));
  t.equal(await count(name), 2);
});

t.test('a key is 1 to 200 printable ASCII characters', async (t) => {
  for (const key of ['x'.repeat(201), 'é', 'a\tb', '']) {
    const reply = await app.owner.post(path, { name: 'never' }, keyed(key));
    t.match(
      reply,
      { status: 400, code: 'validation_failed', body: { error: { issues: [{ path: 'Idempotency-Key' }] } } },
      key,
    );
  }
  t.equal(await count('never'), 0);
  t.match(await app.owner.post(path, { name: 'longest' }, keyed('~'.repeat(200))), { status: 201 });
});

t.test('a stored response lasts 24 hours', async (t) => {
  const name = randomUUID();
  await app.owner.post(path, { name }, keyed(name));
  await app.database.owner.query(
    `update app.idempotency_keys set created_at = now() - interval '25 hours' where key = $1`,
    [name],
  );
  t.match(await app.owner.post(path, { name }, keyed(name)), { data: { count: 2 } });
});
