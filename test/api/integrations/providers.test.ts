import t from 'tap';
import type { Integration } from '../../../api/integrations/schema.ts';
import { HIDDEN } from '../../../engine/secret_values.ts';
import { json, openServer } from '../../engine/providers/support.ts';
import { expectSuccess, type Fields, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { atIntegrations } from '../../support/authorization_flows.ts';
import { createTestOrganization, type TestOrganization, updateOrganization } from '../../support/fixtures.ts';
import { issuePaths } from '../../support/http.ts';
import { brokenInvariants } from '../../support/invariants.ts';
import { openCalls } from './calls.ts';
import { cases, otherAddress, startWithPeers } from './peers.ts';

const peers = await startWithPeers(t);
const { app, faults } = peers;
const sql = sqlOf(app);
const org = await createTestOrganization(sql);
const elsewhere = await createTestOrganization(sql);
const all = cases(peers);

type At = Pick<TestOrganization, 'organizationId'>;
const at = atIntegrations;
const calls = (ref: string, where: At = org, client = app.owner) => openCalls(client, where, ref);

async function make(provider: string, key: string) {
  const body = { key, provider };
  expectSuccess(await app.owner.post<Integration>(at(org, ''), body), 201);
  return calls(key);
}

const secretsOf = async (id: string): Promise<readonly unknown[]> => {
  const { rows } = await app.database.owner.query(
    'select ciphertext from app.integration_secrets where organization_id = $1 and integration_id = $2',
    [org.organizationId, id],
  );
  return rows;
};

/** Connected, with its settings. */
async function connected(provider: string, key: string) {
  const one = await make(provider, key);
  const { settings, first, credential } = all[provider] ?? { settings: undefined, credential: {} };
  if (first) expectSuccess(await one.settings(settings));
  expectSuccess(await one.connect(credential));
  if (!first) expectSuccess(await one.settings(settings));
  return one;
}

for (const [provider, { settings, first, wrong, credential, other, refused, malformed }] of Object.entries(all)) {
  t.test(`${provider} is connected, configured, asked, disabled, disconnected and connected again`, async (t) => {
    const one = await make(provider, `of-${provider}`);
    t.equal(refusalOf(await one.discover()), '409 integration_not_ready not_connected');
    if (first) {
      t.equal(refusalOf(await one.connect(credential)), '409 integration_not_ready needs_configuration');
      expectSuccess(await one.settings(settings));
    }
    t.match(refusalOf(await one.connect(malformed)), /^400 credential_rejected/, 'not sent');
    if (refused) t.match(refusalOf(await one.connect(refused)), /^400 credential_rejected rejected/);
    t.match(expectSuccess(await one.get()), { readiness: 'not_connected', connection: null });

    const { revision: before = 0 } = { revision: first ? 1 : 0 };
    const made = expectSuccess(await one.connect(credential));
    t.match(made, { connection: { kind: credential['kind'], revision: before + 1 } });
    const again = expectSuccess(await one.connect(credential));
    t.match(again, { connection: { revision: before + 1 } }, 'of the same account: no replacement');
    if (!first) {
      t.equal(made.readiness, provider === 'stripe' ? 'ready' : 'needs_configuration');
      if (wrong) {
        const reply = await one.settings(wrong);
        t.match(refusalOf(reply), /^400 settings_invalid unknown_choice/);
        t.match(issuePaths(reply), [/^settings\./]);
      }
      expectSuccess(await one.settings(settings));
    }
    t.match(expectSuccess(await one.get()), { readiness: 'ready', settings });
    t.match(expectSuccess(await one.settings(settings)), { readiness: 'ready', connection: { revision: before + 1 } });
    for (const [field, list] of Object.entries(settings ?? {})) {
      if (!Array.isArray(list)) continue;
      const twice = await one.settings({ ...settings, [field]: [...list, ...list] });
      t.equal(refusalOf(twice), '400 validation_failed custom', 'one of them twice');
      t.same(issuePaths(twice), [`settings.${field}.${list.length}`]);
    }
    const foreign = provider === 'stripe' ? all['github']?.settings : { kind: 'stripe' };
    t.match(refusalOf(await one.settings(foreign)), /^400 settings_invalid/, 'settings of another provider');

    const found = expectSuccess(await one.discover());
    t.match(found, { discovery: { status: 'ok', error: null }, truncated: false });
    t.match(expectSuccess(await one.get()), { discovery: { status: 'ok' } });

    const { tools } = expectSuccess(await one.get());
    const byMode = expectSuccess(await one.tools({ accessMode: 'full' }));
    t.ok(byMode.tools.length > 0 && byMode.tools.every(({ enabled, available }) => enabled && available));
    const key = tools[0]?.key ?? '';
    const byList = expectSuccess(await one.tools({ accessMode: 'full', tools: [key] }));
    t.same(
      byList.tools.filter(({ enabled }) => enabled).map((tool) => tool.key),
      [key],
    );

    t.match(expectSuccess(await one.status('disabled')), { status: 'disabled', readiness: 'ready' });
    expectSuccess(await one.discover());
    t.match(expectSuccess(await one.status('enabled')), { status: 'enabled' });

    if (other) {
      t.equal(refusalOf(await one.connect(other)), '409 integration_account_differs account_differs');
      t.match(expectSuccess(await one.connect({ ...other, replaceAccount: true })), {
        connection: { revision: before + 2 },
      });
    }
    const gone = expectSuccess(await one.disconnect());
    t.match(gone, { readiness: 'not_connected', connection: null, settings }, 'settings outlive it');
    t.same(expectSuccess(await one.disconnect()), gone, 'a repeat');
    t.same(await secretsOf(gone.id), [], 'its secrets are gone at once');
    const back = expectSuccess(await one.connect(credential));
    t.match(back, { readiness: 'ready', settings });
    t.same(
      back.tools.filter(({ enabled }) => enabled).map((tool) => tool.key),
      [key],
      'so do the tools',
    );
    t.equal((await secretsOf(gone.id)).length, credential['kind'] === 'none' ? 0 : 1);
    expectSuccess(await one.delete());
    t.same(await secretsOf(gone.id), [], 'and with it');
    t.equal(refusalOf(await one.get()), '404 integration_not_found');
  });
}

t.test('a person chooses from stores and collections, by the stored credential or by another one', async (t) => {
  const shop = await connected('lemon-squeezy', 'shop');
  const stores = (ref: string, body: Fields = {}, where: At = org) =>
    app.owner.post<{ items: Fields[]; truncated: boolean }>(at(where, `/${ref}/lemon-squeezy/stores`), body);
  const keyed = { 'idempotency-key': 'the-same' };
  const first = await app.owner.post(at(org, '/shop/lemon-squeezy/stores'), {}, { headers: keyed });
  t.match(expectSuccess(first), {
    items: [{ id: '1', name: 'Store 1', slug: 's1', currency: 'EUR' }, { id: '2' }],
    truncated: false,
  });
  const bare = await app.owner.post(at(org, '/shop/lemon-squeezy/stores'));
  t.same(expectSuccess(bare), first.data, 'without a body, and without a media type');
  const other = await app.owner.post(
    at(org, '/shop/lemon-squeezy/stores'),
    { apiKey: 'y'.repeat(40) },
    { headers: keyed },
  );
  t.equal(other.status, 200, 'an Idempotency-Key is ignored');
  t.match(refusalOf(await stores('shop', { apiKey: 'revoked'.repeat(9) })), /^400 credential_rejected/);
  await make('lemon-squeezy', 'unconnected');
  t.equal(refusalOf(await stores('unconnected')), '409 integration_not_ready not_connected');
  t.equal(expectSuccess(await stores('unconnected', { apiKey: 'y'.repeat(40) })).items.length, 2);
  t.match((await calls('unconnected').get()).data, { connection: null, discovery: null });
  t.equal(refusalOf(await stores('shop', {}, elsewhere)), '404 integration_not_found');

  await connected('mongodb', 'data');
  // With one key for all of them: it is ignored here too.
  const resources = (ref: string, body: Fields) =>
    app.owner.post<Fields>(at(org, `/${ref}/mongodb/resources`), body, { headers: keyed });
  const listed = expectSuccess(await resources('data', { databaseName: 'other' }));
  t.same(listed, {
    collections: [
      { name: 'carts', fields: ['n'] },
      { name: 'orders', fields: ['customer', 'customer.name', 'total'] },
    ],
    truncated: false,
  });
  t.match((await calls('data').get()).data.settings, { databaseName: 'shop' }, 'nothing is kept');
  expectSuccess(await resources('data', { databaseName: 'shop', credential: all['mongodb']?.credential }));
  t.match(refusalOf(await resources('data', {})), /^400 validation_failed/);
  t.equal(refusalOf(await resources('shop', { databaseName: 'shop' })), '404 integration_not_found another_provider');
  const properties = await app.owner.get(at(org, '/shop/google-analytics/properties'));
  t.equal(refusalOf(properties), '404 integration_not_found another_provider');
  const analytics = await make('google-analytics', 'analytics');
  t.equal(
    refusalOf(await app.owner.get(at(org, '/analytics/google-analytics/properties'))),
    '409 integration_not_ready not_connected',
  );
  t.match(refusalOf(await analytics.connect({ kind: 'api_key', apiKey: 'x' })), /^400 credential_rejected/);
  const { rows } = await app.database.owner.query('select from app.idempotency_keys where organization_id = $1', [
    org.organizationId,
  ]);
  t.equal(rows.length, 0, 'nothing is kept under a key');
  for (const one of [shop, analytics, calls('unconnected'), calls('data')]) expectSuccess(await one.delete());
});

t.test('a credential that a provider repeats among what there is to choose from is hidden', async (t) => {
  const shop = await connected('lemon-squeezy', 'echoing');
  faults.reply = ({ headers }, res) => {
    const key = String(headers.authorization).slice('Bearer '.length);
    const attributes = { name: `of ${key}`, slug: 's', domain: 'd', currency: 'EUR' };
    json(res, 200, { data: [{ type: 'stores', id: '1', attributes }], meta: { page: { total: 1 } } });
  };
  const apiKey = 'y'.repeat(40);
  for (const body of [{}, { apiKey }]) {
    const found = await app.owner.post<{ items: Fields[] }>(at(org, '/echoing/lemon-squeezy/stores'), body);
    t.equal(expectSuccess(found).items[0]?.['name'], `of ${HIDDEN}`);
  }
  faults.reply = undefined;
  expectSuccess(await shop.delete());
});

t.test('a provider that fails, limits us or breaks off is 502 or 503, and recorded', async (t) => {
  const one = await connected('stripe', 'failing');
  for (const [reply, expected, code] of [
    [
      (_: unknown, res: Parameters<typeof json>[0]) => json(res, 500, { error: 'planted' }),
      503,
      'provider_unavailable',
    ],
    [
      (_: unknown, res: Parameters<typeof json>[0]) => json(res, 429, { error: 'planted' }, { 'retry-after': '600' }),
      503,
      'provider_unavailable',
    ],
    [(_: unknown, res: Parameters<typeof json>[0]) => void res.destroy(), 503, 'provider_unavailable'],
    [(_: unknown, res: Parameters<typeof json>[0]) => void res.end('no JSON: planted'), 502, 'provider_failed'],
  ] as const) {
    faults.reply = reply;
    const reply_ = await one.discover();
    t.match(reply_, { status: expected, code });
    t.equal(reply_.headers.has('retry-after'), expected === 503);
    t.match((await one.get()).data.discovery, { status: 'failed', error: { code } });
    t.notMatch(JSON.stringify([reply_.body, (await one.get()).body]), 'planted');
    faults.reply = undefined;
    // What was asked of the budget ends with the connection's account.
    await app.database.owner.query('delete from app.rate_limit_buckets');
  }
  t.match(expectSuccess(await one.get()), { readiness: 'degraded' });
  expectSuccess(await one.discover());
  t.match(expectSuccess(await one.get()), { readiness: 'ready', discovery: { status: 'ok', error: null } });
  faults.reply = (_, res) => json(res, 401, {});
  t.equal(refusalOf(await one.discover()), '409 integration_not_ready needs_reauthorization');
  faults.reply = undefined;
  t.match(expectSuccess(await one.get()), { readiness: 'needs_reauthorization', discovery: { status: 'failed' } });
  t.match(expectSuccess(await one.connect(all['stripe']?.credential ?? {})), { readiness: 'ready' });
  expectSuccess(await one.delete());
});

t.test('another address ends the connection, as its secret is for the other server', async (t) => {
  const one = await connected('upstash-redis', 'cache');
  expectSuccess(await one.discover());
  const { connection, discovery, tools, id } = expectSuccess(await one.tools({ accessMode: 'full' }));
  const scope = { ...all['upstash-redis']?.settings, keyScope: { kind: 'prefixes', prefixes: ['other:'] } };
  t.match(expectSuccess(await one.settings(scope)), { connection }, 'the scope alone');
  const calls = peers.upstash.calls.length;
  t.equal((await secretsOf(id)).length, 1);
  const moved = expectSuccess(await one.settings(otherAddress));
  t.match(moved, { readiness: 'not_connected', connection: null, discovery });
  const chosen = (all: Integration['tools']) => all.map(({ key, effect, enabled }) => [key, effect, enabled]);
  t.same(chosen(moved.tools), chosen(tools), 'they are of the provider, wherever it is');
  t.same(await secretsOf(id), []);
  t.equal(peers.upstash.calls.length, calls, 'nothing was sent there');
  expectSuccess(await one.delete());
});

t.test('tools whose schemas are hostile are not offered, and no pattern is kept', async (t) => {
  const one = await connected('mcp', 'hostile');
  const elsewhere = await openServer(t, () => ({ type: 'string' }));
  const offered = (name: string, properties: Fields) => ({ name, inputSchema: { type: 'object', properties } });
  const own = peers.tools.splice(
    0,
    peers.tools.length,
    offered('remote', { q: { $ref: `${elsewhere.origin}/schema.json` } }),
    offered('slow', { q: { type: 'string', pattern: '^(a+)+$' }, pattern: { enum: ['a'] } }),
  );
  t.teardown(() => void peers.tools.splice(0, peers.tools.length, ...own));
  t.match(expectSuccess(await one.discover()).items, [
    { name: 'remote', problem: 'remote_reference' },
    { name: 'slow', problem: null },
  ]);
  const inputSchema = { type: 'object', properties: { q: { type: 'string' }, pattern: { enum: ['a'] } } };
  const kept = expectSuccess(await one.get()).tools;
  t.same(
    kept.map((tool) => [tool.key, tool.inputSchema]),
    [['slow', inputSchema]],
  );
  t.match(refusalOf(await one.tools({ accessMode: 'full', tools: ['remote'] })), /^400 /);
  t.match(expectSuccess(await one.tools({ accessMode: 'full', tools: ['slow'] })).tools, [{ enabled: true }]);
  t.equal(elsewhere.calls.length, 0, 'no reference was followed');
  expectSuccess(await one.delete());
});

t.test('settings for two servers at once leave one of them', async (t) => {
  const one = await make('upstash-redis', 'raced');
  const replies = await Promise.all([one.settings(all['upstash-redis']?.settings), one.settings(otherAddress)]);
  const refused = replies.filter(({ status }) => status !== 200);
  t.ok(refused.every((reply) => refusalOf(reply) === '409 integration_conflict revision_moved'));
  t.ok(refused.length < 2);
  expectSuccess(await one.delete());
});

t.test('credentials at once, and a disconnect among them, leave one connection or none', async (t) => {
  const one = await make('stripe', 'at-once');
  const { credential = {} } = all['stripe'] ?? {};
  const replies = await Promise.all([...Array(4)].map(() => one.connect(credential)));
  t.ok(replies.some(({ status }) => status === 200));
  for (const reply of replies.filter(({ status }) => status !== 200)) {
    t.match(refusalOf(reply), /^409 integration_conflict/);
  }
  t.match(expectSuccess(await one.get()), { connection: { revision: 1 } });
  await Promise.all([one.connect(credential), one.disconnect()]);
  t.same(await brokenInvariants(sql), {});
  expectSuccess(await one.delete());
});

t.test('a tool that its server changes is off, and a new one too', async (t) => {
  const one = await connected('mcp', 'server');
  expectSuccess(await one.discover());
  const effects = { search: 'read' };
  t.match(expectSuccess(await one.tools({ tools: ['search'], effects })).tools, [{ effect: 'read', enabled: true }]);
  t.match(expectSuccess(await one.discover()), { items: [{ name: 'search' }] });
  t.match((await one.get()).data.tools, [{ effect: 'read', enabled: true }], 'the same tool');
  peers.tools.splice(
    0,
    1,
    { name: 'search', description: 'Does more', inputSchema: { type: 'object' } },
    { name: 'send', inputSchema: { type: 'object' } },
  );
  expectSuccess(await one.discover());
  t.match((await one.get()).data.tools, [
    { key: 'search', effect: 'write', enabled: false },
    { key: 'send', enabled: false },
  ]);
  peers.tools.splice(1, 1);
  expectSuccess(await one.discover());
  t.match((await one.get()).data.tools[1], { key: 'send', available: false, unavailableReason: 'not_offered' });
  expectSuccess(await one.delete());
});

t.test('what the organization does not allow or blocks is refused before anything is sent', async (t) => {
  const stripe = await connected('stripe', 'blocked');
  const server = await connected('mcp', 'blocked-server');
  const sent = () => peers.stripe.calls.length + peers.mcp.calls.length;
  await updateOrganization(sql.api, org, { constraints: { allowedIntegrations: ['github'] } });
  const before = sent();
  for (const reply of [
    await stripe.connect(all['stripe']?.credential ?? {}),
    await stripe.discover(),
    await stripe.settings({ kind: 'stripe' }),
    await server.discover(),
    await server.settings(all['mcp']?.settings),
  ]) {
    t.equal(refusalOf(reply), '403 provider_forbidden not_allowed');
  }
  await updateOrganization(sql.api, org, {
    constraints: { allowedIntegrations: [], blockedDomains: ['stripe.com', '127.0.0.1'] },
  });
  for (const reply of [
    await stripe.connect(all['stripe']?.credential ?? {}),
    await stripe.discover(),
    await server.discover(),
  ]) {
    t.equal(refusalOf(reply), '403 provider_forbidden blocked');
  }
  t.equal(refusalOf(await server.settings(all['mcp']?.settings)), '400 settings_invalid blocked');
  t.equal(sent(), before);
  await updateOrganization(sql.api, org, { constraints: { blockedDomains: [] } });
  for (const one of [stripe, server]) expectSuccess(await one.delete());
});

t.test('a credential or its disconnect is of the organization alone, and of its owner', async (t) => {
  const { id } = expectSuccess(await (await connected('stripe', 'hidden')).get());
  const nobody = app.service;
  const { credential = {} } = all['stripe'] ?? {};
  for (const [client, where, expected] of [
    [app.owner, elsewhere, '404 integration_not_found'],
    [nobody, org, '401 owner_unauthorized'],
  ] as const) {
    const one = calls(id, where, client);
    for (const reply of [
      await one.connect(credential),
      await one.disconnect(),
      await one.settings({ kind: 'stripe' }),
      await one.discover(),
    ]) {
      t.equal(refusalOf(reply), expected);
    }
  }
  t.match((await calls('hidden').get()).data, { readiness: 'ready', connection: { revision: 1 } });
  expectSuccess(await calls('hidden').delete());
});

t.test('without a key of the deployment no credential is kept', async (t) => {
  const integrations = { ...app.config.integrations, encryptionKeys: [] };
  const bare = await startTestApp(t, { database: app.database, config: { integrations, allowPrivateAddresses: true } });
  const one = await make('stripe', 'unkept');
  const reply = await bare.owner.put(at(org, '/unkept/credential'), all['stripe']?.credential);
  t.equal(refusalOf(reply), '409 integration_not_ready deployment_setting');
  t.same(issuePaths(reply), ['ENCRYPTION_KEYS']);
  t.match((await one.get()).data, { connection: null });
  expectSuccess(await one.delete());
});

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
