import t from 'tap';
import { cases, PLANTED, startWithPeers } from '../../../api/integrations/peers.ts';
import { json } from '../../../engine/providers/support.ts';
import { expectSuccess, type Fields, ownerPath, sqlOf } from '../../../support/api_fixtures.ts';
import { ADMIN_TOKEN } from '../../../support/app.ts';
import { auditEntries } from '../../../support/audit_fixtures.ts';
import { authorizationEpoch, createTestOrganization } from '../../../support/fixtures.ts';

const peers = await startWithPeers(t);
const { app, faults } = peers;
const sql = sqlOf(app);
const org = await createTestOrganization(sql);
const all = cases(peers);
const at = (rest = '') => ownerPath(org, `/integrations${rest}`);
/** Everything that came out, by where. */
const heard: [string, string][] = [];

async function send(method: string, path: string, body?: Fields, client = app.owner): Promise<Fields> {
  const reply = await client.send<Fields>(method, path, body);
  heard.push([`${method} ${path}`, JSON.stringify([reply.body, [...reply.headers]])]);
  return reply.data;
}

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
  await send('GET', at());
  await send('GET', ownerPath(org, '/audit?limit=200'));
  const epoch = await authorizationEpoch(sql, org.organizationId);
  const agents = `/internal/agent/organizations/${org.organizationId}/integrations?authorizationEpoch=${epoch}`;
  await send('GET', agents, undefined, app.service);
  await send('DELETE', `${at('/stripe')}/credential`);
  await send('DELETE', at('/github'));

  heard.push(['audit', JSON.stringify(await auditEntries(sql, org.organizationId))]);
  heard.push(['log', JSON.stringify(app.logged)]);
  heard.push(['metrics', await (await app.owner.fetch('/metrics')).text()]);
  heard.push(['openapi', await (await app.owner.fetch('/openapi.json')).text()]);
  const query = `{ integrations(first: 10) { nodes { key name provider settings discoveryError connectionRevision
    connection { kind accountLabel grantedScopes degradedCode reauthorizationReason }
    tools(first: 50) { nodes { key title description inputSchema } } } } }`;
  const graphql = await app.owner.as(ADMIN_TOKEN).fetch('/internal/admin/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  heard.push(['graphql', await graphql.text()]);
  t.equal(graphql.status, 200);
  // All that is stored but for what is sealed, as a dump of the database would show it.
  const { rows } = await app.database.owner.query<{ name: string }>(
    `select table_schema || '.' || table_name as name from information_schema.tables
     where table_schema in ('app', 'reporting')`,
  );
  t.ok(rows.length > 20);
  for (const { name } of rows) {
    const found = await app.database.owner.query(
      `select x::text as line from ${name} x where x::text ilike '%${PLANTED}%'`,
    );
    heard.push([name, JSON.stringify(found.rows)]);
  }
  t.ok(heard.length > 200);
  const leaks = heard.filter(([, text]) => text.toLowerCase().includes(PLANTED));
  t.same(
    leaks.map(([where, text]) => [
      where,
      text.slice(Math.max(0, text.indexOf(PLANTED) - 200), text.indexOf(PLANTED) + 60),
    ]),
    [],
  );
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
