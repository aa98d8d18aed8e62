import t from 'tap';
import { integrationProblem, type OpenConnection, useConnection } from '../../../engine/integrations/index.ts';
import { openAuthorizationServer } from '../../support/authorization_server.ts';
import { openAs } from '../../support/database.ts';
import { authorizationEpoch } from '../../support/fixtures.ts';
import { readIntegration, tool } from '../../support/integration_fixtures.ts';
import { openSql } from '../../support/transitions.ts';
import { type Connected, connectTokens, integrationConfig, openTestIntegrations } from './support.ts';

const sql = await openSql(t);
const db = openAs(sql.url, { role: 'runner_api', size: 4, applicationName: 'test api' });
t.teardown(() => db.end());
const keys = integrationConfig({ origins: {} }).integrations.encryptionKeys;

const scope = (name: string) => `https://www.googleapis.com/auth/${name}`;
const [GMAIL, CALENDAR] = [scope('gmail.readonly'), scope('calendar.readonly')];
const IDENTITY = ['openid', 'email'];
const google = await openAuthorizationServer(t, {
  issuer: 'https://accounts.google.com',
  routes: { token: '/token', userinfo: '/v1/userinfo' },
  scopes: ['email', GMAIL, CALENDAR],
  client: { id: 'google-client', secret: 'google-secret' },
});
const server = google.open(['https://console.example/callback']);
const integrations = openTestIntegrations(t, db, {
  origins: { 'https://oauth2.googleapis.com': google.origin, 'https://openidconnect.googleapis.com': google.origin },
});

/** A person has granted all of it, and can take parts back at the provider. */
async function connectGranted(services: readonly string[]) {
  const granted = [...IDENTITY, GMAIL, CALENDAR];
  const grant = new server.Grant({ accountId: 'anna', clientId: 'google-client' });
  for (const one of granted) grant.addOIDCScope(one);
  const grantId = await grant.save();
  const client = await server.Client.find('google-client');
  const facts = { accountId: 'anna', client, grantId, gty: 'authorization_code', scope: granted.join(' ') };
  const refreshToken = await new server.RefreshToken(facts).save();
  const connected = await connectTokens(
    sql,
    { access_token: 'over', refresh_token: refreshToken },
    {
      keys,
      provider: 'google-workspace',
      tools: [tool('mail.read', { requiredScopes: [GMAIL] }), tool('events.list', { requiredScopes: [CALENDAR] })],
      facts: { grantedScopes: granted },
    },
  );
  await sql.owner.query('update app.integrations set services = $2 where id = $1', [
    connected.target.integrationId,
    JSON.stringify(services),
  ]);
  const takeBack = async (taken: string) => {
    grant.rejectOIDCScope(taken);
    await grant.save();
  };
  return { ...connected, takeBack };
}

const verify = ({ provider, context, access }: OpenConnection) => provider.verify(context, access);

/** Used with an access token that is over, so that it is refreshed. */
async function use({ target }: Connected) {
  await sql.owner.query(
    "update app.integration_connections set token_expires_at = now() - interval '1 minute' where integration_id = $1",
    [target.integrationId],
  );
  return useConnection(integrations, target, verify);
}

async function stateOf({ org, target }: Connected) {
  const { readiness, tools } = await readIntegration(sql, org, target.integrationId);
  return { readiness, reasons: Object.fromEntries(tools.map((one) => [one.key, one.unavailable_reason])) };
}

t.test('scopes that a person takes back at the provider show at the next refresh', async (test) => {
  const connected = await connectGranted(['gmail', 'calendar']);
  const epoch = () => authorizationEpoch(sql, connected.org.organizationId);
  const before = await epoch();
  await use(connected);
  test.equal(await epoch(), before, 'all of them are left');
  await connected.takeBack(CALENDAR);
  await use(connected);
  test.same(await stateOf(connected), {
    readiness: 'ready',
    reasons: { 'mail.read': null, 'events.list': 'scopes_missing' },
  });
  test.equal(await epoch(), before + 1);
  await use(connected);
  test.equal(await epoch(), before + 1);
  await connected.takeBack(GMAIL);
  test.match(integrationProblem(await use(connected).catch((error: unknown) => error)), {
    status: 409,
    code: 'integration_not_ready',
    issues: [{ code: 'needs_reauthorization' }],
  });
  test.match(await stateOf(connected), { readiness: 'needs_reauthorization' });
  test.equal(await epoch(), before + 2);
});

t.test('a connection needs the scopes of the services that were chosen, and no others', async (test) => {
  const connected = await connectGranted(['calendar']);
  await connected.takeBack(GMAIL);
  await use(connected);
  test.same(await stateOf(connected), {
    readiness: 'ready',
    reasons: { 'mail.read': 'scopes_missing', 'events.list': null },
  });
  await connected.takeBack(CALENDAR);
  await test.rejects(use(connected));
  test.match(await stateOf(connected), { readiness: 'needs_reauthorization' });
});
