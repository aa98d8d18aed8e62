import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import t, { type Test } from 'tap';
import { z } from 'zod';
import { uuid } from '../../../api/fields/ids.ts';
import { type Endpoint, endpoint } from '../../../api/http/endpoint.ts';
import { call } from '../../../engine/db/call.ts';
import { OWNER_TOKEN, SERVICE_TOKEN, startTestApp } from '../../support/app.ts';
import { createTestDatabase } from '../../support/database.ts';
import { createClient } from '../../support/http.ts';
import { createOrganization, startRun } from './started_run.ts';

const who = z.looseObject({ kind: z.string() });

/** One endpoint for each audience, and a write; each tells who called. */
const endpoints: readonly Endpoint[] = [
  endpoint({
    method: 'get',
    path: '/organizations/{organizationId}/who',
    audience: 'owner',
    tag: 'System',
    operationId: 'ownerReads',
    summary: 'Owner',
    params: { organizationId: uuid },
    response: { data: who },
    handler: ({ caller }) => ({ ...caller }),
  }),
  endpoint({
    method: 'get',
    path: '/organizations/{organizationId}/decided',
    audience: 'owner',
    tag: 'System',
    operationId: 'ownerDecides',
    summary: 'Owner, by token',
    params: { organizationId: uuid },
    ownerToken: true,
    response: { data: who },
    handler: ({ caller }) => ({ ...caller }),
  }),
  endpoint({
    method: 'post',
    path: '/organizations/{organizationId}/who',
    audience: 'owner',
    tag: 'System',
    operationId: 'ownerWrites',
    summary: 'Owner',
    params: { organizationId: uuid },
    body: z.strictObject({ name: z.string() }),
    response: { data: who },
    handler: ({ caller }) => ({ ...caller }),
  }),
  endpoint({
    method: 'post',
    path: '/organizations/{organizationId}/made',
    audience: 'owner',
    tag: 'System',
    operationId: 'ownerCreates',
    summary: 'Owner of what is only being made',
    params: { organizationId: uuid },
    membership: 'none',
    response: { data: who },
    handler: ({ caller }) => ({ ...caller }),
  }),
  endpoint({
    method: 'get',
    path: '/internal/agent/organizations/{organizationId}/who',
    audience: 'agent',
    tag: 'System',
    operationId: 'agentReads',
    summary: 'Agent',
    params: { organizationId: uuid },
    response: { data: who },
    handler: ({ caller }) => ({ ...caller }),
  }),
  endpoint({
    method: 'post',
    path: '/internal/work',
    audience: 'worker',
    tag: 'System',
    operationId: 'workerWorks',
    summary: 'Worker',
    body: z.strictObject({ name: z.string() }),
    response: { data: who },
    handler: ({ caller }) => ({ ...caller }),
  }),
];

const somewhere = '/organizations/018f3c1e-7a2b-7c3d-8e4f-5a6b7c8d9e0f';

/** A request with headers that fetch does not let one choose. */
async function status(url: string, path: string, headers: Record<string, string>): Promise<number> {
  const { hostname, port } = new URL(url);
  const outgoing = request({ hostname, port, path, headers }).end();
  const [response] = await once(outgoing, 'response');
  response.resume();
  return response.statusCode;
}

const database = await createTestDatabase(t);
const start = (t: Test, config: Parameters<typeof startTestApp>[1] & object) =>
  startTestApp(t, { endpoints, database, ...config });

t.test('open mode serves loopback names alone, and no other web site', async (t) => {
  const app = await start(t, {});
  const organizationId = await createOrganization(app.services.db);
  const path = `/organizations/${organizationId}/who`;
  t.same((await app.owner.get(path)).data, { kind: 'owner', mode: 'open', subject: null, platform: true });
  const { host, port } = new URL(app.url);
  for (const good of [host, `localhost:${port}`, `[::1]:${port}`, 'localhost', '127.0.0.2']) {
    t.equal(await status(app.url, path, { host: good }), 200, good);
  }
  for (const bad of [
    'evil.example',
    `evil.example:${port}`,
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '10.0.0.1',
  ]) {
    t.equal(await status(app.url, path, { host: bad }), 403, bad);
  }
  t.equal(await status(app.url, path, { host, origin: `http://${host}` }), 200, 'its own pages');
  for (const bad of [
    'https://evil.example',
    'null',
    `http://localhost:${port}`,
    'http://127.0.0.1:1',
    `https://${host}`,
  ]) {
    t.equal(await status(app.url, path, { host, origin: bad }), 403, bad);
  }
  const refused = await app.owner.get(path, { headers: { origin: 'https://evil.example' } });
  t.match(refused, { status: 403, code: 'forbidden' });
});

t.test('what decides about agents takes a token in open mode too', async (t) => {
  const app = await start(t, {});
  const organizationId = await createOrganization(app.services.db);
  const [open, decided] = ['who', 'decided'].map((last) => `/organizations/${organizationId}/${last}`) as [
    string,
    string,
  ];
  const nobody = createClient(app.url);
  t.match(await nobody.get(open), { status: 200, data: { mode: 'open' } });
  t.match(
    await nobody.as('another-token-0123456789-0123456789-0123').get(open),
    { status: 200 },
    'nothing is compared',
  );
  t.match(await nobody.get(decided), { status: 401, code: 'owner_unauthorized' });
  t.match((await nobody.get(decided)).headers.get('www-authenticate'), /^Bearer/);
  for (const token of ['another-token-0123456789-0123456789-0123', SERVICE_TOKEN]) {
    t.match(await nobody.as(token).get(decided), { status: 401, code: 'owner_unauthorized' });
  }
  t.match(await nobody.as(OWNER_TOKEN).get(decided), { status: 200, data: { mode: 'open', platform: true } });
  const without = await start(t, { config: { ownerAuth: { mode: 'open', tokens: [] } } });
  t.match(await without.owner.get(decided), { status: 401 }, 'where there is no token, nobody has it');
  const locked = await start(t, { config: { ownerAuth: { mode: 'token', tokens: [OWNER_TOKEN] } } });
  t.match(await locked.owner.get(decided), { status: 401 });
  t.match(await locked.owner.as(OWNER_TOKEN).get(decided), { status: 200, data: { mode: 'token' } });
});

t.test('token mode takes each of its tokens, and says 401 with a challenge otherwise', async (t) => {
  const second = 'a-second-owner-token-for-rotation-012345';
  const app = await start(t, { config: { ownerAuth: { mode: 'token', tokens: [OWNER_TOKEN, second] } } });
  const organizationId = await createOrganization(app.services.db);
  const path = `/organizations/${organizationId}/who`;
  for (const token of [OWNER_TOKEN, second]) {
    t.match(await app.owner.as(token).get(path), { status: 200, data: { mode: 'token', platform: true } });
  }
  for (const token of ['wrong', OWNER_TOKEN.slice(0, -1), `${OWNER_TOKEN}x`, SERVICE_TOKEN]) {
    const reply = await app.owner.as(token).get(path);
    t.match(reply, { status: 401, code: 'owner_unauthorized' });
    t.match(reply.headers.get('www-authenticate'), /^Bearer realm=.*error="invalid_token"/);
  }
  const none = await app.owner.get(path);
  t.match(none, { status: 401, code: 'owner_unauthorized' });
  t.equal(none.headers.get('www-authenticate'), 'Bearer realm="business-runner"');
  t.match(await app.owner.get(path, { headers: { authorization: `Basic ${OWNER_TOKEN}` } }), { status: 401 });
  t.match(await app.owner.as(OWNER_TOKEN).get(path, { headers: { origin: 'https://console.example' } }), {
    status: 200,
  });
});

t.test('authentication comes before validation and before the body', async (t) => {
  const app = await start(t, { config: { ownerAuth: { mode: 'token', tokens: [OWNER_TOKEN] } } });
  t.match(await app.owner.get('/organizations/not-a-uuid/who?foreign=1'), { status: 401 });
  t.match(await app.owner.post(`${somewhere}/who`, { wrong: true }), { status: 401 });
  t.match(await app.owner.post(`${somewhere}/who`, { name: 'x'.repeat(3_000_000) }), { status: 401 });
  t.match(await app.owner.as(OWNER_TOKEN).get('/organizations/not-a-uuid/who'), { status: 400 });
  t.match(await app.owner.post('/internal/work', { wrong: true }), { status: 401, code: 'agent_unauthorized' });
});

t.test('jwt mode: members read, viewers do not write, others see nothing', async (t) => {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const { privateKey: foreignKey } = await generateKeyPair('ES256');
  let serving = true;
  const jwks = createServer(async (_req, res) => {
    if (!serving) return res.destroy();
    res.setHeader('content-type', 'application/json');
    res.end(JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'k1', alg: 'ES256' }] }));
  }).listen(0, '127.0.0.1');
  await once(jwks, 'listening');
  t.teardown(() => jwks.close());
  const jwksUrl = `http://127.0.0.1:${(jwks.address() as AddressInfo).port}/jwks`;
  const ownerAuth = { mode: 'jwt', jwksUrl, issuer: 'https://issuer.example', audience: 'runner' } as const;
  const app = await start(t, { config: { ownerAuth } });
  const sign = (claims: Record<string, unknown>, key = privateKey, expires = '5 minutes') =>
    new SignJWT({ iss: ownerAuth.issuer, aud: ownerAuth.audience, ...claims })
      .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
      .setExpirationTime(expires)
      .sign(key);

  const organizationId = await createOrganization(app.services.db, 'anna');
  const member = { organizationId, subject: 'vic', role: 'viewer' };
  await call(app.services.db, 'organization_member_put', member, z.unknown());
  const path = `/organizations/${organizationId}/who`;
  const anna = app.owner.as(await sign({ sub: 'anna' }));
  const vic = app.owner.as(await sign({ sub: 'vic' }));
  const mallory = app.owner.as(await sign({ sub: 'mallory' }));

  t.match(await anna.get(path), { status: 200, data: { mode: 'jwt', subject: 'anna', platform: false } });
  t.match(await anna.post(path, { name: 'x' }), { status: 200 });
  t.match(await vic.get(path), { status: 200, data: { subject: 'vic' } });
  t.match(await vic.post(path, { name: 'x' }), { status: 403, code: 'forbidden' });
  t.match(await mallory.get(path), { status: 404, code: 'organization_not_found' });
  t.match(await mallory.post(path, { name: 'x' }), { status: 404, code: 'organization_not_found' });
  t.match(await anna.get(`${somewhere}/who`), { status: 404, code: 'organization_not_found' });
  t.match(await mallory.post(`${somewhere}/made`), { status: 200 }, 'whoever makes it is not a member yet');

  const wrong = {
    'another issuer': await sign({ sub: 'anna', iss: 'https://evil.example' }),
    'another audience': await sign({ sub: 'anna', aud: 'other' }),
    'another key': await sign({ sub: 'anna' }, foreignKey),
    expired: await sign({ sub: 'anna' }, privateKey, '-1 minute'),
    'no subject': await sign({}),
    'an empty subject': await sign({ sub: '' }),
    'a subject with a control character': await sign({ sub: 'an\0na' }),
    'no signature': `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from('{"sub":"anna"}').toString('base64url')}.`,
    'a shared secret': await new SignJWT({ sub: 'anna', iss: ownerAuth.issuer, aud: 'runner' })
      .setProtectedHeader({ alg: 'HS256', kid: 'k1' })
      .setExpirationTime('5 minutes')
      .sign(new TextEncoder().encode(JSON.stringify(await exportJWK(publicKey)))),
    nonsense: 'abc',
  };
  for (const [name, token] of Object.entries(wrong)) {
    const reply = await app.owner.as(token).get(path);
    t.match(reply, { status: 401, code: 'owner_unauthorized' }, name);
    t.match(reply.headers.get('www-authenticate'), /invalid_token/, name);
  }

  // Another process, which has not fetched the key set.
  const later = await start(t, { config: { ownerAuth: { ...ownerAuth } } });
  serving = false;
  const unknown = await later.owner.as(await sign({ sub: 'anna' })).get(path);
  t.match(
    unknown,
    { status: 503, code: 'service_unavailable' },
    'a key set that cannot be read says nothing about the token',
  );
  t.match(
    later.logged.find((line) => line['level'] === 'error'),
    { err: { type: 'UnavailableError', cause: {} } },
  );
});

t.test('workers need the service token', async (t) => {
  const rotated = 'another-service-token-0123456789abcdef';
  const app = await start(t, { config: { agentServiceTokens: [SERVICE_TOKEN, rotated] } });
  const { executionToken } = await startRun(app.services.db);
  t.match(await app.service.post('/internal/work', { name: 'x' }), { status: 200, data: { kind: 'service' } });
  t.match(await app.owner.as(rotated).post('/internal/work', { name: 'x' }), { status: 200 });
  for (const token of [executionToken, OWNER_TOKEN, 'x']) {
    const reply = await app.owner.as(token).post('/internal/work', { name: 'x' });
    t.match(reply, { status: 401, code: 'agent_unauthorized' });
    t.match(reply.headers.get('www-authenticate'), /^Bearer/);
  }
  const closed = await start(t, { config: { agentServiceTokens: [] } });
  t.match(await closed.owner.as('').post('/internal/work', { name: 'x' }), { status: 401 });
  t.match(await closed.service.post('/internal/work', { name: 'x' }), { status: 401 });
});

t.test('agents come with the service token, or with a capability of a run that is on', async (t) => {
  const app = await start(t, {});
  const run = await startRun(app.services.db);
  const path = `/internal/agent/organizations/${run.organizationId}/who`;
  t.match(await app.service.get(path), { status: 200, data: { kind: 'service' } });

  const agent = app.owner.as(run.executionToken);
  t.match(await agent.get(path), {
    status: 200,
    data: { kind: 'capability', actor: { organizationId: run.organizationId, runId: run.runId, mode: 'execute' } },
  });
  const other = await createOrganization(app.services.db);
  const wrong = {
    'another organization': [agent, `/internal/agent/organizations/${other}/who`],
    'no organization': [agent, '/internal/agent/organizations/not-a-uuid/who'],
    'another token': [app.owner.as('0'.repeat(64)), path],
    'a token of another form': [app.owner.as('short'), path],
    'no token': [app.owner, path],
  } as const;
  for (const [name, [client, where]] of Object.entries(wrong)) {
    const reply = await client.get(where);
    t.match(reply, { status: 401, code: 'agent_unauthorized' }, name);
    t.match(reply.headers.get('www-authenticate'), /^Bearer/, name);
  }
  t.match(await app.service.get('/internal/agent/organizations/not-a-uuid/who'), { status: 400 });

  await database.owner.query('update app.run_requests set lease_expires_at = clock_timestamp() where id = $1', [
    run.runRequestId,
  ]);
  t.match(await agent.get(path), { status: 401, code: 'agent_unauthorized' }, 'the lease has run out');
});

t.test('neither tokens nor bodies reach the log', async (t) => {
  const app = await start(t, {});
  await app.service.post('/internal/work?secret=in-the-query', { name: 'in-the-body' });
  await app.service.post('/internal/work', { name: 'in-the-body' });
  const log = JSON.stringify(app.logged);
  t.match(log, /workerWorks/);
  t.notMatch(log, /in-the-query|in-the-body/);
  t.notMatch(log, new RegExp(SERVICE_TOKEN));
});
