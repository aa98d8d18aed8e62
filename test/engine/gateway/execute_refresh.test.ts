// Writes whose access token the provider no longer takes: GitHub with tokens that rotate, which keeps the issues that it was sent.
import t from 'tap';
import { sealFields } from '../../../engine/integrations/secrets.ts';
import { expectSuccess, ownerPath } from '../../support/api_fixtures.ts';
import { createTestOrganization, runNew } from '../../support/fixtures.ts';
import { openGateway } from '../../support/gateway_world.ts';
import { account, allow, connect } from '../../support/integration_fixtures.ts';
import { transition } from '../../support/transitions.ts';
import { integrationConfig } from '../integrations/support.ts';
import { json, openServer } from '../providers/support.ts';

/** `accessToken`: the one that is good. A refresh gives `next`; undefined: it is refused, and null: the token endpoint is down. */
const state = { accessToken: '', next: undefined as string | null | undefined, refreshes: 0 };
const tried: string[] = [];

const github = await openServer(t, ({ url, headers }, res) => {
  if (url.pathname === '/login/oauth/access_token') {
    state.refreshes += 1;
    if (state.next === null) return void json(res, 503, {});
    if (state.next === undefined) return { error: 'bad_refresh_token' };
    return {
      access_token: state.next,
      refresh_token: 'refresh-1',
      token_type: 'bearer',
      expires_in: 28_800,
      scope: '',
    };
  }
  tried.push(String(headers.authorization));
  if (headers.authorization !== `Bearer ${state.accessToken}`)
    return void json(res, 401, { message: 'Bad credentials' });
  return { number: 7, html_url: 'https://github.com/acme/site/issues/7' };
});

const { integrations } = integrationConfig({
  origins: { 'https://github.com': github.origin, 'https://api.github.com': github.origin },
});
const world = await openGateway(t, { config: { integrations } });
const { app, sql } = world;

t.beforeEach(() => {
  Object.assign(state, { accessToken: 'access-1', next: 'access-1', refreshes: 0 });
  tried.length = 0;
});

/** An issue that an owner has approved, with a token that seems good for a day. */
async function approved() {
  const org = await createTestOrganization(sql);
  const at = (rest = '') => ownerPath(org, `/integrations${rest}`);
  const { id } = expectSuccess(await app.owner.post<{ id: string }>(at(), { key: 'shop', provider: 'github' }), 201);
  const target = { organizationId: org.organizationId, integrationId: id, revision: 1 };
  const tokens = new Map(Object.entries({ access_token: 'access-0', refresh_token: 'refresh-0' }));
  const tokenExpiresAt = new Date(Date.now() + 86_400_000).toISOString();
  await connect(sql.api, org, id, account(id, { kind: 'oauth2', grantedScopes: [], tokenExpiresAt }), {
    secrets: sealFields(app.config.integrations.encryptionKeys, 'github', target, tokens),
  });
  const settings = { kind: 'github', owner: 'acme', repositories: ['site'] };
  const change = { settings, connectionRevision: 1, disconnect: false };
  await transition(sql.api, 'integration_settings_put', {
    organizationId: org.organizationId,
    integrationRef: id,
    ...change,
  });
  expectSuccess(await app.owner.put(at('/shop/tools'), { accessMode: 'full' }));
  await allow(sql, org, 'integrations.read', 'integrations.propose');
  const by = await world.resolve(org, await runNew(sql, org));
  const given = { owner: 'acme', repo: 'site', title: 'Broken' };
  const { action } = expectSuccess(await world.execute(by, { tool: 'github.issues.create', arguments: given }));
  const actionId = (await world.approve(by, action?.id ?? '')).id;
  const readiness = async () => expectSuccess(await app.owner.get<{ readiness: string }>(at('/shop'))).readiness;
  return { by, id: actionId, readiness };
}

t.test('a token that is refused is exchanged, and the request sent again, once', async (t) => {
  const { by, id, readiness } = await approved();
  await world.runAction(by, id);
  t.match(await world.action(by, id), { status: 'succeeded', execution: { attempts: 1, result: { number: 7 } } });
  t.same(tried, ['Bearer access-0', 'Bearer access-1']);
  t.equal(state.refreshes, 1);
  t.equal(await readiness(), 'ready');
});

t.test('a new token that is refused too ends it: it is not sent a third time', async (t) => {
  const { by, id, readiness } = await approved();
  state.accessToken = 'another';
  await world.runAction(by, id);
  t.match(await world.action(by, id), { status: 'failed', execution: { error: { code: 'rejected' } } });
  t.same(tried, ['Bearer access-0', 'Bearer access-1']);
  t.equal(state.refreshes, 1);
  t.equal(await readiness(), 'needs_reauthorization');
});

for (const [name, next, health] of [
  ['is refused', undefined, 'needs_reauthorization'],
  ['gets no response', null, 'degraded'],
] as const) {
  t.test(`a token that is refused, and whose refresh ${name}: it has failed, for nothing was done`, async (t) => {
    const { by, id, readiness } = await approved();
    state.next = next;
    await world.runAction(by, id);
    t.match(await world.action(by, id), { status: 'failed', execution: { error: { code: 'rejected' } } });
    t.same(tried, ['Bearer access-0']);
    t.equal(await readiness(), health);
    await world.runAction(by, id);
    t.same(tried, ['Bearer access-0'], 'and is not sent again');
  });
}
