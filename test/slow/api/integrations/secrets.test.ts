import { randomUUID } from 'node:crypto';
import t from 'tap';
import { cases, PLANTED, startWithPeers } from '../../../api/integrations/peers.ts';
import { type Call, json } from '../../../engine/providers/support.ts';
import { agentPath, expectSuccess, type Fields, ownerPath, sqlOf } from '../../../support/api_fixtures.ts';
import { disclosed, kept, responsesOf } from '../../../support/disclosure.ts';
import { readLists, readPaths } from '../../../support/everything_read.ts';
import { createTestOrganization, authorizationEpoch as epochOf, runNew } from '../../../support/fixtures.ts';
import { recordHttp } from '../../../support/http_recording.ts';
import { allow } from '../../../support/integration_fixtures.ts';

const exchanges = recordHttp(t);
const peers = await startWithPeers(t);
const { app, faults } = peers;
const sql = sqlOf(app);
const org = await createTestOrganization(sql);
const all = cases(peers);
const at = (rest = '') => ownerPath(org, `/integrations${rest}`);
const send = (method: string, path: string, body?: Fields) => app.owner.send<Fields>(method, path, body);

/** The credential that a request came with, as providers repeat it. */
const repeated = ({ headers }: Call) => {
  const value = String(headers.authorization).replace('Bearer ', '');
  const forms = (['base64', 'base64url', 'hex'] as const).map((form) => Buffer.from(`of ${value}`).toString(form));
  return [value, encodeURIComponent(value), ...forms].join(' ');
};

/** A look through the gateway at a provider that repeats what it was called with. */
const looks: Readonly<Record<string, Readonly<{ call: Fields; replies: (call: Call) => unknown }>>> = {
  stripe: {
    call: { tool: 'stripe.charges.list', arguments: {} },
    replies: (call) => ({ data: [{ id: 'ch_1', [repeated(call)]: repeated(call) }], has_more: false }),
  },
  github: {
    call: { tool: 'github.issues.list', arguments: { owner: 'Acme', repo: 'site' } },
    replies: (call) => [{ number: 1, title: repeated(call), body: repeated(call) }],
  },
  'upstash-redis': {
    call: { tool: 'upstash_redis.get', arguments: { key: 'app:a' } },
    replies: (call) => ({ result: repeated(call) }),
  },
};

/** All that a provider can refuse with, with its own words in it. */
const refusals: readonly ((res: Parameters<typeof json>[0]) => unknown)[] = [
  (res) =>
    json(res, 500, { error: { message: PLANTED, code: `${PLANTED} a sentence` }, errors: [{ detail: PLANTED }] }),
  (res) =>
    json(
      res,
      401,
      { error: { message: PLANTED }, error_description: PLANTED },
      { 'www-authenticate': `Bearer error="${PLANTED}"` },
    ),
  (res) => json(res, 403, { message: PLANTED, errors: [{ code: PLANTED.repeat(9) }] }, { [`x-${PLANTED}`]: PLANTED }),
  (res) => json(res, 429, { message: PLANTED }, { 'retry-after': PLANTED }),
  (res) => json(res, 302, {}, { location: `http://127.0.0.1:1/${PLANTED}` }),
  (res) => json(res, 200, PLANTED),
  (res) => void res.writeHead(200, PLANTED, { 'content-type': `text/${PLANTED}` }).end(`{"${PLANTED}`),
];

t.test('nothing that a provider or a person plants comes out anywhere', async (t) => {
  for (const [provider, { settings, first, credential, other, refused, malformed }] of Object.entries(all)) {
    const one = at(`/${provider}`);
    await send('POST', at(), { key: provider, provider });
    if (first) await send('PUT', `${one}/settings`, { settings });
    for (const given of [malformed, refused, credential, other]) {
      if (given) await send('PUT', `${one}/credential`, given);
    }
    await send('PUT', `${one}/credential`, { ...credential, unknown: PLANTED });
    await send('PUT', `${one}/credential`, { ...credential, kind: 'api_key', token: [PLANTED] });
    await send('PUT', `${one}/settings`, { settings });
    await send('POST', `${one}/discover`);
    for (const reply of refusals) {
      faults.reply = (_, res) => reply(res);
      await send('POST', `${one}/discover`);
      await send('PUT', `${one}/credential`, credential);
      await send('PUT', `${one}/settings`, { settings });
      faults.reply = undefined;
      await app.database.owner.query('delete from app.rate_limit_buckets');
      await send('PUT', `${one}/credential`, credential);
    }
    await send('GET', one);
  }
  for (const [path, body] of [
    ['/lemon-squeezy/lemon-squeezy/stores', {}],
    ['/lemon-squeezy/lemon-squeezy/stores', { apiKey: `${PLANTED}-${'y'.repeat(40)}` }],
    ['/mongodb/mongodb/resources', { databaseName: 'shop' }],
    ['/mongodb/mongodb/resources', { databaseName: 'shop', credential: all['mongodb']?.credential }],
    ['/mongodb/mongodb/resources', { databaseName: 'shop', credential: all['mongodb']?.refused }],
  ] as const) {
    await send('POST', at(path), body);
  }
  for (const serverUrl of [`https://user:${PLANTED}@files.example/mcp`, `http://${PLANTED}@127.0.0.1/mcp`]) {
    t.equal((await send('PUT', at('/mcp/settings'), { settings: { kind: 'mcp', serverUrl } })).status, 400);
  }
  const restUrl = `https://user:${PLANTED}@tidy-cat-30142.upstash.io`;
  const keyScope = { kind: 'prefixes', prefixes: ['app:'] };
  const settings = { kind: 'upstash_redis', restUrl, keyScope };
  t.equal((await send('PUT', at('/upstash-redis/settings'), { settings })).status, 400);
  const host = `user:${PLANTED}@127.0.0.1`;
  t.equal((await send('PUT', at('/mongodb/credential'), { ...all['mongodb']?.credential, host })).status, 400);
  await allow(sql, org, 'integrations.read');
  for (const provider of Object.keys(looks)) {
    expectSuccess(await app.owner.put(at(`/${provider}/tools`), { accessMode: 'read_only' }));
  }
  const { organizationId } = org;
  const run = await runNew(sql, org);
  const { runId, taskId } = run;
  const agent = app.owner.as(run.executionToken);
  for (const [provider, { call, replies }] of Object.entries(looks)) {
    const authorizationEpoch = await epochOf(sql, organizationId);
    const asked = { integrationKey: provider, authorizationEpoch, kind: 'cli' };
    const { integration, gateway } = expectSuccess(
      await agent.post<{ integration: { id: string }; gateway: { capability: string } }>(
        agentPath(org, '/integrations/resolve'),
        asked,
      ),
    );
    const path = `/internal/cli/integrations/${integration.id}/invocations`;
    const execute = () => app.owner.as(gateway.capability).post(`${path}/${randomUUID()}/execute`, call);
    faults.reply = (one, res) => json(res, 200, replies(one));
    t.match(expectSuccess(await execute()), { kind: 'result' }, provider);
    for (const reply of refusals) {
      faults.reply = (_, res) => reply(res);
      await execute();
      await app.database.owner.query('delete from app.rate_limit_buckets');
    }
    faults.reply = undefined;
    await send('PUT', at(`/${provider}/credential`), all[provider]?.credential);
  }
  const epoch = await epochOf(sql, organizationId);
  const values = { organizationId, runId, taskId, integrationRef: 'github', integrationKey: 'github' };
  t.ok((await readPaths(app, values, [app.owner, app.service, agent], { authorizationEpoch: String(epoch) })) > 20);
  await readLists(app, organizationId);
  await send('DELETE', `${at('/stripe')}/credential`);
  await send('DELETE', at('/github'));
  const told = [...responsesOf(app, exchanges), ...(await kept(app))];
  t.ok(told.length > 400);
  const planted = new Map([PLANTED, PLANTED.toUpperCase()].map((secret) => [secret, 'planted']));
  t.same(disclosed(told, planted), []);
});

t.test('the secrets are there, sealed: the providers got them', async (t) => {
  const { rows } = await app.database.owner.query(
    'select field, octet_length(ciphertext) as bytes from app.integration_secrets',
  );
  t.ok(rows.length >= 3);
  const given = [peers.stripe, peers.lemon, peers.github, peers.upstash].flatMap(({ calls }) => calls);
  t.ok(given.filter(({ headers }) => headers.authorization?.includes(PLANTED)).length > 20);
  expectSuccess(await app.owner.post(at('/lemon-squeezy/discover')));
});
