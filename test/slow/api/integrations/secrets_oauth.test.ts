// Every secret that went between the API and its providers while people authorized, agents called tools, and all of that failed: none of
// it is in anything that came out, or is stored.
import { randomUUID } from 'node:crypto';
import t from 'tap';
import { receiptKeys } from '../../../../engine/receipts/index.ts';
import { authorizedCases, openAuthorizations } from '../../../api/integrations/authorizations.ts';
import { openCalls } from '../../../api/integrations/calls.ts';
import { openHostileMcp } from '../../../api/integrations/hostile_mcp.ts';
import { expectSuccess, type Fields, ownerPath, refusalOf } from '../../../support/api_fixtures.ts';
import { atIntegrations, ended, openFlows, resultOf, toConsole } from '../../../support/authorization_flows.ts';
import { openBrowser } from '../../../support/authorization_server.ts';
import { disclosed, kept, providersOf, responsesOf, SECRET_NAMES, secretsIn } from '../../../support/disclosure.ts';
import { readLists, readPaths } from '../../../support/everything_read.ts';
import {
  authorizationEpoch,
  createTestOrganization,
  runNew,
  type TestOrganization,
} from '../../../support/fixtures.ts';
import { openGateway } from '../../../support/gateway_world.ts';
import { recordHttp } from '../../../support/http_recording.ts';
import { allow } from '../../../support/integration_fixtures.ts';

const exchanges = recordHttp(t);
const peers = await openAuthorizations(t);
const hostile = await openHostileMcp(t);
const signing = receiptKeys.parse(Buffer.alloc(32, 7).toString('base64'));
const world = await openGateway(t, { config: { ...peers.config, receiptKeys: signing } });
const { app, sql } = world;
const cases = authorizedCases(peers, app);

/** Refuses codes and tokens in the words of the request. */
const refusing = { isOn: false };
for (const { server } of [peers.google, peers.github, peers.mcp]) {
  server.before.unshift(async (req, res) => {
    if (!refusing.isOn || req.method !== 'POST' || !/token|revoke/.test(req.url ?? '')) return false;
    let body = '';
    for await (const chunk of req) body += chunk;
    const [error = ''] = [...new URLSearchParams(body).values()].filter((value) =>
      /^[A-Za-z][\w.-]{11,63}$/.test(value),
    );
    const text = JSON.stringify({ error, error_description: body, error_uri: `https://errors.example/?${body}` });
    res.writeHead(400, { 'content-type': 'application/json' }).end(text);
    return true;
  });
}
function refuse(isOn: boolean): void {
  refusing.isOn = isOn;
  peers.x.state.isRepeating = isOn;
}
// Who somebody is there, is the token that asks for it.
peers.github.naming.loginOf = (_account, token) => token;
peers.x.state.nameOf = (token) => token;

const expire = (org: TestOrganization) =>
  sql.owner.query(
    `update app.integration_connections set token_expires_at = now() where organization_id = $1 and kind = 'oauth2'`,
    [org.organizationId],
  );
/** Budgets are no part of it. */
const refill = () => sql.owner.query('delete from app.rate_limit_buckets');

for (const [provider, one] of Object.entries(cases)) {
  t.test(`${provider}: everything that can become of an authorization`, async (test) => {
    one.signIn();
    const org = await createTestOrganization(sql);
    const { create, read, verify, revoke, comeBack, ...flows } = openFlows(app, provider);
    const calls = openCalls(app.owner, org, provider);
    const start = () => flows.start(org, one.body);
    const authorize = () => flows.authorize(org, one.body);
    await create(org);
    if (one.address) expectSuccess(await calls.settings(one.address));
    one.denies(true);
    test.same(await authorize(), ended('denied', provider));
    one.denies(false);
    refuse(true);
    await authorize();
    refuse(false);
    await refill();
    const browser = openBrowser();
    const callback = await comeBack(browser, await start());
    await openBrowser().go(callback, toConsole);
    const strange = new URL(callback);
    strange.searchParams.append('code', 'another');
    strange.searchParams.set('error', callback.searchParams.get('code') ?? '');
    strange.pathname = '/oauth/stripe/callback';
    await fetch(strange, { redirect: 'manual' });
    test.same(resultOf(await browser.go(callback, toConsole)), ended('connected', provider));
    await browser.go(callback, toConsole);
    if (one.choice) expectSuccess(await calls.settings(one.choice));
    expectSuccess(await calls.tools({ accessMode: 'full' }));
    expectSuccess(await calls.discover());
    await expire(org);
    expectSuccess(await calls.discover(), 200);
    await expire(org);
    refuse(true);
    await calls.discover();
    await verify(org).catch(() => undefined);
    await revoke(org);
    refuse(false);
    await refill();
    test.same(await authorize(), ended('connected', provider));
    await one.revoke();
    await calls.discover();
    test.equal((await read(org)).readiness, 'needs_reauthorization');
    test.same(await authorize(), ended('connected', provider));
    expectSuccess(await revoke(org), 200);
    test.same(await authorize(), ended('connected', provider));
  });
}

t.test('a server that repeats what it knows, and an agent that calls it', async (test) => {
  const org = await createTestOrganization(sql);
  const { create, start, comeBack, authorize, revoke } = openFlows(app, 'mcp');
  const shop = openCalls(app.owner, org, 'shop');
  await create(org, 'shop');
  for (const address of [
    'https://user:planted-word-of-a-person%2B@files.example/mcp',
    'http://planted-word-of-a-person@127.0.0.1/mcp',
  ]) {
    test.match(refusalOf(await shop.settings({ kind: 'mcp', serverUrl: address })), /^400 /);
  }
  expectSuccess(await shop.settings({ kind: 'mcp', serverUrl: hostile.serverUrl }));
  hostile.state.fault = 'errors';
  for (let times = 0; times < 12; times += 1) {
    test.same(await authorize(org, {}, 'shop'), ended('failed', 'shop'));
    await refill();
  }
  hostile.state.fault = undefined;
  test.same(await authorize(org, { accessMode: 'full' }, 'shop'), ended('connected', 'shop'));
  test.same((await shop.get()).data.connection?.grantedScopes, ['tools:read']);
  expectSuccess(await shop.discover());
  const tools = ['look', 'change'];
  expectSuccess(await shop.tools({ accessMode: 'full', tools, effects: { look: 'read' } }));

  await allow(sql, org, 'integrations.read', 'integrations.propose');
  const run = await runNew(sql, org);
  const by = await world.resolve(org, run);
  const look = () => world.execute(by, { tool: 'look', arguments: {} });
  async function change() {
    const proposed = await world.execute(by, { tool: 'change', arguments: { n: 1 }, repeat: true });
    const id = expectSuccess(proposed).action?.id ?? '';
    await world.approve(by, id);
    await world.runAction(by, id);
    return world.action(by, id);
  }
  test.match(expectSuccess(await look()), { kind: 'result' });
  const changed = await change();
  test.equal(changed.status, 'succeeded');
  const receipt = ownerPath(org, `/actions/${changed.id}/receipt`);
  test.equal((await app.owner.fetch(receipt)).status, 200);
  for (const fault of ['rpc', 'errors', 'scopes'] as const) {
    hostile.state.fault = fault;
    for (let times = 0; times < 5; times += 1) {
      await refill();
      test.not((await look()).status, 200, fault);
      await shop.discover();
    }
    test.not((await change()).status, 'succeeded', fault);
    await refill();
    // A step-up, whose scopes are what the server says that it wants.
    if (fault === 'scopes') await comeBack(openBrowser(), await start(org, {}, 'shop'));
    hostile.state.fault = undefined;
  }
  await expire(org);
  await refill();
  expectSuccess(await shop.discover());
  test.same((await shop.get()).data.connection?.grantedScopes, ['tools:read']);

  const epoch = await authorizationEpoch(sql, org.organizationId);
  const inbox = expectSuccess(await app.owner.get<{ id: string }[]>(ownerPath(org, '/human-inbox')));
  const values = {
    organizationId: org.organizationId,
    integrationRef: 'shop',
    integrationKey: 'shop',
    integrationId: by.integrationId,
    actionId: changed.id,
    runId: run.runId,
    taskId: run.taskId,
    itemId: inbox[0]?.id ?? randomUUID(),
    invocationId: randomUUID(),
  };
  const clients = [app.owner, app.service, app.owner.as(run.executionToken), by.client];
  test.ok((await readPaths(app, values, clients, { authorizationEpoch: String(epoch) })) > 30);
  test.ok((await readLists(app, org.organizationId)) > 15);
  const mapping = atIntegrations(org, '/shop/context-mapping');
  expectSuccess(await app.owner.post(mapping, { role: 'primary' }));
  expectSuccess(await revoke(org, 'shop'));
});

t.test('none of the secrets came out, and none is stored but sealed', async (test) => {
  const secrets = secretsIn(providersOf(app, exchanges));
  secrets.set('planted-word-of-a-person', 'password');
  for (const client of Object.values(app.config.integrations.oauthClients)) {
    if (client) secrets.set(client.secret, 'client_secret');
  }
  const names = new Set(secrets.values());
  for (const name of SECRET_NAMES) test.ok(names.has(name), name);
  const stored = await kept(app);
  for (const where of [
    'log',
    'app.actions',
    'app.integration_secrets',
    'graphile_worker._private_jobs',
    'reporting.audit',
  ]) {
    test.ok(
      stored.some(([name, text]) => name === where && text !== ''),
      where,
    );
  }
  test.ok(stored.some(([where]) => where.startsWith('file ')));
  const told = [...responsesOf(app, exchanges), ...stored];
  test.ok(told.length > 400);
  // The page's button sends the browser to the provider with what the provider gives back.
  const goesOn = new Set(['state', 'nonce', 'oauth_token']);
  const isMeant = (where: string, name: string) => goesOn.has(name) && where.startsWith('POST /oauth/begin/');
  test.same(disclosed(told, secrets, isMeant), []);
  const { rows } = await sql.owner.query<Fields>('select field from app.integration_secrets');
  test.ok(rows.length > 5, 'they are there, sealed');
});
