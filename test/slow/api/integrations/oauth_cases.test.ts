// The rare ends of an authorization, at each provider that is no Google (oauth.test.ts, oauth_grants.test.ts have those of Google).
import { randomUUID } from 'node:crypto';
import t from 'tap';
import { openGithub } from '../../../api/integrations/github.ts';
import { openMcpServer } from '../../../api/integrations/mcp_server.ts';
import { openX } from '../../../api/integrations/x.ts';
import { integrationConfig } from '../../../engine/integrations/support.ts';
import { expectSuccess, refusalOf, sqlOf } from '../../../support/api_fixtures.ts';
import { startTestApp } from '../../../support/app.ts';
import {
  atIntegrations,
  CONSOLE,
  ended,
  openFlows,
  press,
  resultOf,
  toConsole,
} from '../../../support/authorization_flows.ts';
import { openBrowser } from '../../../support/authorization_server.ts';
import { createTestOrganization, type TestOrganization } from '../../../support/fixtures.ts';
import { transition } from '../../../support/transitions.ts';

const [github, x, mcp] = [await openGithub(t), await openX(t), await openMcpServer(t)];
const { integrations } = integrationConfig({ origins: { ...github.origins, ...x.origins } });
const app = await startTestApp(t, {
  config: { integrations: { ...integrations, frontendUrl: CONSOLE }, allowPrivateAddresses: true },
});
const sql = sqlOf(app);
const atGithub = github.open(app.url);
const atMcp = mcp.open([]);

type Case = Readonly<{
  /** Signs somebody in whom the provider has not seen. */
  signIn(): void;
  denies(denies: boolean): void;
  /** The person takes the authorization back, at the provider. */
  revoke(): Promise<void> | void;
  /** Undefined: the provider does not say whose a token is, so that each connection has an authorization of its own. */
  tellsAccounts: boolean;
  settings?: Readonly<Record<string, unknown>>;
  /** Without one, tokens that end connect nothing; null: tokens do not end. */
  refresh: { isOn: boolean } | null;
  withoutRefresh?: 'failed' | 'connected';
}>;

const cases: Readonly<Record<string, Case>> = {
  github: {
    signIn: () => {
      github.server.person.account = `p-${randomUUID()}`;
    },
    denies: (denies) => {
      github.server.person.denies = denies;
    },
    revoke: () => atGithub.revoke(github.server.person.account),
    tellsAccounts: true,
    refresh: github.server.refresh,
    withoutRefresh: 'failed',
  },
  'x-ads': {
    signIn: () => {
      x.state.user = { id: String(Math.floor(Math.random() * 1e12) + 1), name: 'acme' };
    },
    denies: (denies) => {
      x.state.denies = denies;
    },
    revoke: () => x.state.revoke(x.state.user.id),
    tellsAccounts: true,
    refresh: null,
  },
  mcp: {
    signIn: () => {
      mcp.server.person.account = `p-${randomUUID()}`;
    },
    denies: (denies) => {
      mcp.server.person.denies = denies;
    },
    revoke: () => atMcp.revoke(),
    tellsAccounts: false,
    settings: { kind: 'mcp', serverUrl: mcp.serverUrl },
    refresh: mcp.server.refresh,
    withoutRefresh: 'connected',
  },
};

for (const [provider, one] of Object.entries(cases)) {
  const { create, read, start, comeBack, authorize, verify, revoke } = openFlows(app, provider);
  const result = (name: string, key = provider) => ended(name, key);

  async function make(org: TestOrganization, key = provider): Promise<string> {
    const { id } = await create(org, key);
    const settings = atIntegrations(org, `/${key}/settings`);
    if (one.settings) expectSuccess(await app.owner.put(settings, { settings: one.settings }));
    return id;
  }
  async function begin() {
    one.signIn();
    const org = await createTestOrganization(sql);
    const id = await make(org);
    const revision = (await read(org)).connection?.revision ?? (one.settings ? 2 : 1);
    return { org, id, revision };
  }

  t.test(`${provider}: denied, and then granted`, async (test) => {
    const { org } = await begin();
    one.denies(true);
    test.same(await authorize(org), result('denied'));
    one.denies(false);
    test.match(await read(org), { readiness: 'not_connected', connection: null });
    test.same(await authorize(org), result('connected'));
  });

  t.test(`${provider}: expired`, async (test) => {
    const { org, id } = await begin();
    const browser = openBrowser();
    const callback = await comeBack(browser, await start(org));
    await sql.owner.query('update app.integration_oauth_states set expires_at = now() where integration_id = $1', [id]);
    test.same(resultOf(await browser.go(callback, toConsole)), result('expired'));
    test.match(await read(org), { readiness: 'not_connected' });
  });

  t.test(`${provider}: another browser, unknown parameters, and delivered again`, async (test) => {
    const { org } = await begin();
    const browser = openBrowser();
    const callback = await comeBack(browser, await start(org));
    test.same(resultOf(await openBrowser().go(callback, toConsole)), result('failed'), 'another browser');
    test.match(await read(org), { connection: null });
    callback.searchParams.append('unknown', 'one');
    callback.searchParams.append('unknown', 'two');
    const both = await Promise.all([browser.go(callback, toConsole), browser.go(callback, toConsole)]);
    test.same(both.map(resultOf), [result('connected'), result('connected')]);
    const connected = await read(org);
    test.same(resultOf(await browser.go(callback, toConsole)), result('connected'));
    test.same(await read(org), connected, 'a repeat changes nothing');
    const elsewhere = new URL(callback);
    elsewhere.pathname = '/oauth/google-workspace/callback';
    test.match(resultOf(await browser.go(elsewhere, toConsole)), { result: 'expired' });
  });

  t.test(`${provider}: of two tabs the old one restores nothing`, async (test) => {
    const { org, id } = await begin();
    const [first, second] = [openBrowser(), openBrowser()];
    const old = await comeBack(first, await start(org));
    const other = await comeBack(second, await start(org));
    test.same(resultOf(await second.go(other, toConsole)), result('connected'));
    test.same(resultOf(await first.go(old, toConsole)), result('conflict'));
    const again = await comeBack(first, await start(org));
    await transition(sql.api, 'integration_disconnect', { organizationId: org.organizationId, integrationRef: id });
    test.same(resultOf(await first.go(again, toConsole)), result('conflict'));
    test.match(await read(org), { readiness: 'not_connected' });
  });

  t.test(`${provider}: another account`, async (test) => {
    const { org } = await begin();
    test.same(await authorize(org), result('connected'));
    const { revision = 0 } = (await read(org)).connection ?? {};
    test.same(await authorize(org), result('connected'), 'the same one');
    test.equal((await read(org)).connection?.revision, revision, 'is no replacement');
    one.signIn();
    test.same(await authorize(org), result(one.tellsAccounts ? 'conflict' : 'connected'));
    test.equal((await read(org)).connection?.revision, revision);
    test.same(await authorize(org, { replaceAccount: true }), result('connected'));
    test.equal((await read(org)).connection?.revision, one.tellsAccounts ? revision + 1 : revision);
  });

  const { refresh, withoutRefresh } = one;
  if (refresh !== null && withoutRefresh !== undefined) {
    t.test(`${provider}: no refresh token`, async (test) => {
      const { org, id } = await begin();
      refresh.isOn = false;
      t.teardown(() => {
        refresh.isOn = true;
      });
      test.same(await authorize(org), result(withoutRefresh));
      test.match(await read(org), { readiness: withoutRefresh === 'connected' ? 'ready' : 'not_connected' });
      refresh.isOn = true;
      if (withoutRefresh === 'failed') test.same(await authorize(org), result('connected'));
      refresh.isOn = false;
      test.same(await authorize(org), result('connected'));
      refresh.isOn = true;
      const { rows } = await sql.owner.query('select field from app.integration_secrets where integration_id = $1', [
        id,
      ]);
      const keeps = rows.some(({ field }) => field === 'refresh_token');
      test.equal(keeps, withoutRefresh === 'failed', 'the stored one of the same account goes on');
      const expire = 'update app.integration_connections set token_expires_at = now() where integration_id = $1';
      await sql.owner.query(expire, [id]);
      if (keeps) test.ok(await verify(org), 'refreshed');
      else await test.rejects(verify(org), { code: 'integration_not_ready' });
    });
  }

  t.test(`${provider}: revoked at the provider`, async (test) => {
    const { org } = await begin();
    await authorize(org);
    const { connection } = await read(org);
    test.ok(await verify(org));
    await one.revoke();
    await test.rejects(verify(org), { code: 'integration_not_ready' });
    test.match(await read(org), { readiness: 'needs_reauthorization' });
    test.same(await authorize(org), result('connected'));
    test.match(await read(org), { connection: { revision: connection?.revision } });
    test.not((await read(org)).readiness, 'needs_reauthorization');
    test.ok(await verify(org));
  });

  t.test(`${provider}: revoked by us, with siblings here and elsewhere`, async (test) => {
    const { org } = await begin();
    const elsewhere = await createTestOrganization(sql);
    await make(org, 'sibling');
    await make(elsewhere);
    test.same(await authorize(org), result('connected'));
    test.same(await authorize(org, {}, 'sibling'), result('connected', 'sibling'));
    test.same(await authorize(elsewhere), result('connected'));
    one.signIn();
    const bystander = await createTestOrganization(sql);
    await make(bystander);
    test.same(await authorize(bystander), result('connected'));
    const shared = one.tellsAccounts;
    const { unlinked, ...counted } = expectSuccess(await revoke(org), 200);
    test.same(counted, { revoked: true, changedMeanwhile: [], otherOrganizations: shared ? 1 : 0 });
    const keys = (unlinked as { key: string }[]).map(({ key }) => key).toSorted();
    test.same(keys, shared ? [provider, 'sibling'].toSorted() : [provider]);
    test.match(await read(org), { readiness: 'not_connected' });
    const ready = (await read(bystander)).readiness;
    test.notMatch(ready, /needs_reauthorization|not_connected/);
    test.equal((await read(org, 'sibling')).readiness, shared ? 'not_connected' : ready);
    test.equal((await read(elsewhere)).readiness, shared ? 'needs_reauthorization' : ready);
    test.ok(await verify(bystander));
    test.equal(refusalOf(await revoke(org)), '409 integration_not_ready not_connected');
  });

  t.test(`${provider}: a flow that begins is the one of its page`, async (test) => {
    const { org } = await begin();
    const page = await start(org);
    test.same(resultOf(await press(openBrowser(), page)), result('connected'));
    test.equal((await press(openBrowser(), page)).response?.status, 404);
  });
}

t.test('MCP: a part of what was asked for is what is connected', async (test) => {
  const { create, read, authorize } = openFlows(app, 'mcp');
  const org = await createTestOrganization(sql);
  await create(org);
  expectSuccess(await app.owner.put(atIntegrations(org, '/mcp/settings'), { settings: cases['mcp']?.settings }));
  const scopes = 'tools:read tools:write';
  mcp.wanted.scope = scopes;
  t.teardown(() => {
    mcp.wanted.scope = 'tools:read';
  });
  mcp.server.person.grants = (scope) => scope !== 'tools:write';
  // The server takes no token without them, so that the connection does not come about, and nothing pretends that it does.
  test.same(await authorize(org), ended('failed', 'mcp'));
  test.match(await read(org), { readiness: 'not_connected', connection: null });
  mcp.server.person.grants = () => true;
  test.same(await authorize(org), ended('connected', 'mcp'));
  test.same((await read(org)).connection?.grantedScopes.toSorted(), scopes.split(' '));
});

t.test('nothing of all that was logged is a secret', async (test) => {
  test.notMatch(JSON.stringify(app.logged), /access-secret|request-secret|x-secret|github-secret/);
});
