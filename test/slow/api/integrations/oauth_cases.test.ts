import t from 'tap';
import { startWithAuthorizations } from '../../../api/integrations/authorizations.ts';
import { expectSuccess, refusalOf, sqlOf } from '../../../support/api_fixtures.ts';
import { atIntegrations, ended, openFlows, press, resultOf, toConsole } from '../../../support/authorization_flows.ts';
import { openBrowser } from '../../../support/authorization_server.ts';
import { createTestOrganization, type TestOrganization } from '../../../support/fixtures.ts';
import { transition } from '../../../support/transitions.ts';

const { app, cases } = await startWithAuthorizations(t);
const sql = sqlOf(app);

for (const [provider, one] of Object.entries(cases)) {
  const { create, read, comeBack, verify, revoke, ...flows } = openFlows(app, provider);
  const start = (org: TestOrganization, more: object = {}, key = provider) =>
    flows.start(org, { ...one.body, ...more }, key);
  const authorize = (org: TestOrganization, more: object = {}, key = provider) =>
    flows.authorize(org, { ...one.body, ...more }, key);
  const { asked = /./ } = one;
  const result = (name: string, key = provider) => ended(name, key);

  async function make(org: TestOrganization, key = provider): Promise<string> {
    const { id } = await create(org, key);
    if (one.address) expectSuccess(await configure(org, one.address, key));
    return id;
  }
  function configure(org: TestOrganization, settings: object, key = provider) {
    return app.owner.put(atIntegrations(org, `/${key}/settings`), { settings });
  }
  async function begin() {
    one.signIn();
    const org = await createTestOrganization(sql);
    return { org, id: await make(org) };
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
    elsewhere.pathname = `/oauth/${provider === 'github' ? 'x-ads' : 'github'}/callback`;
    test.match(resultOf(await browser.go(elsewhere, toConsole)), { result: 'expired' });
  });

  t.test(`${provider}: of two tabs the old one restores nothing`, async (test) => {
    const { org, id } = await begin();
    const [first, second] = [openBrowser(), openBrowser()];
    const old = await comeBack(first, await start(org));
    const other = await comeBack(second, await start(org));
    test.same(resultOf(await second.go(other, toConsole)), result('connected'));
    test.same(resultOf(await first.go(old, toConsole)), result('conflict'));
    const late = await comeBack(first, await start(org));
    one.signIn();
    test.same(await authorize(org, { replaceAccount: true }), result('connected'), 'another account');
    const replaced = await read(org);
    test.same(resultOf(await first.go(late, toConsole)), result('conflict'), 'which the old one does not replace');
    test.same(await read(org), replaced);
    const third = openBrowser();
    const again = await comeBack(third, await start(org));
    await transition(sql.api, 'integration_disconnect', { organizationId: org.organizationId, integrationRef: id });
    test.same(resultOf(await third.go(again, toConsole)), result('conflict'));
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

  for (const { what, grants, asks, ends, lacks, wrong } of one.parts) {
    t.test(`${provider}: what was asked for in part: ${what}`, async (test) => {
      const { org } = await begin();
      const lacking = async () => {
        const { tools } = await read(org);
        return tools.filter(
          ({ key, effect, unavailableReason }) => asked.test(key) && effect === 'read' && unavailableReason,
        );
      };
      if (grants) one.grants(grants);
      asks?.(true);
      test.same(await authorize(org), result(ends));
      const { connection, readiness } = await read(org);
      if (ends === 'connected') {
        const tools = await lacking();
        test.equal(tools.length > 0, lacks !== undefined);
        test.ok(tools.every((tool) => lacks?.test(tool.key) && tool.unavailableReason === 'scopes_missing'));
        if (grants) test.ok(connection?.grantedScopes.every(grants));
        if (wrong) test.equal(refusalOf(await configure(org, wrong)), '400 settings_invalid unknown_choice');
        if (one.choice) expectSuccess(await configure(org, one.choice));
        test.equal((await read(org)).readiness, 'ready');
      } else test.same({ readiness, connection }, { readiness: 'not_connected', connection: null });
      one.grants(() => true);
      test.same(await authorize(org), result('connected'));
      asks?.(false);
      test.same(await lacking(), []);
      if (connection) test.equal((await read(org)).connection?.revision, connection.revision);
    });
  }

  const { refresh } = one;
  if ('impossible' in refresh) {
    t.test(`${provider}: no refresh token`, { skip: refresh.impossible }, async () => undefined);
  } else {
    const { switch: switched, without: withoutRefresh } = refresh;
    t.test(`${provider}: no refresh token`, async (test) => {
      const { org, id } = await begin();
      switched.isOn = false;
      t.teardown(() => {
        switched.isOn = true;
      });
      test.same(await authorize(org), result(withoutRefresh));
      test.match(await read(org), { readiness: withoutRefresh === 'connected' ? 'ready' : 'not_connected' });
      switched.isOn = true;
      if (withoutRefresh === 'failed') test.same(await authorize(org), result('connected'));
      switched.isOn = false;
      test.same(await authorize(org), result('connected'));
      switched.isOn = true;
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

  t.test(`${provider}: each start is another one, for ten minutes, whatever its Idempotency-Key is`, async (test) => {
    const { org, id } = await begin();
    const path = atIntegrations(org, `/${provider}/oauth/${provider}/start`);
    const keyed = { headers: { 'idempotency-key': 'the-same' } };
    type Started = { authorizationUrl: string; expiresAt: string };
    const before = Date.now();
    const replies: Started[] = [];
    for (const more of [{}, {}, { replaceAccount: true }]) {
      replies.push(expectSuccess(await app.owner.post<Started>(path, { ...one.body, ...more }, keyed), 200));
    }
    test.equal(new Set(replies.map(({ authorizationUrl }) => authorizationUrl)).size, replies.length);
    const { rows } = await sql.owner.query(
      'select expires_at, created_at from app.integration_oauth_states where integration_id = $1 order by created_at',
      [id],
    );
    test.same(
      replies.map(({ expiresAt }) => expiresAt),
      rows.map(({ expires_at: expiresAt }) => expiresAt.toISOString()),
    );
    for (const { expiresAt } of replies) {
      const ms = Date.parse(expiresAt) - before;
      test.ok(ms >= 600_000 - 1 && ms < 600_000 + Date.now() - before + 1_000, expiresAt);
    }
    const kept = await sql.owner.query('select from app.idempotency_keys where organization_id = $1', [
      org.organizationId,
    ]);
    test.equal(kept.rowCount, 0, 'nothing of it is kept');
  });

  t.test(`${provider}: a flow that begins is the one of its page`, async (test) => {
    const { org } = await begin();
    const page = await start(org);
    test.same(resultOf(await press(openBrowser(), page)), result('connected'));
    test.equal((await press(openBrowser(), page)).response?.status, 404);
  });
}

t.test('nothing of all that was logged is a secret', async (test) => {
  test.notMatch(JSON.stringify(app.logged), /access-secret|request-secret|x-secret|github-secret/);
});
