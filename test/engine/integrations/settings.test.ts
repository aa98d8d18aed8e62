import t from 'tap';
import { checkSettings, lookUp, readIntegration } from '../../../engine/integrations/index.ts';
import { HIDDEN } from '../../../engine/secret_values.ts';
import { openAs } from '../../support/database.ts';
import { openSql } from '../../support/transitions.ts';
import { openStandIn } from '../providers/mongo_stand_in.ts';
import { connectTokens, integrationConfig, openTestIntegrations } from './support.ts';

const sql = await openSql(t);
const db = openAs(sql.url, { role: 'runner_api', size: 2, applicationName: 'test api' });
t.teardown(() => db.end());
const integrations = openTestIntegrations(t, db, { origins: {} });
const keys = integrationConfig({ origins: {} }).integrations.encryptionKeys;

t.test('a name that is like the password is not shown, and may be chosen', async (test) => {
  const user = { username: 'reader', password: 'orders' };
  const { port } = await openStandIn(test, { ...user, collections: { carts: [{ n: 1 }], orders: [{ n: 1 }] } });
  const credential = { kind: 'mongodb', host: '127.0.0.1', port, srv: false, tls: false, ...user };
  const { target } = await connectTokens(
    sql,
    { credential: JSON.stringify(credential) },
    { keys, provider: 'mongodb', facts: { kind: 'mongodb', tokenExpiresAt: null, grantedScopes: null } },
  );
  const { organizationId, integrationId: integrationRef } = target;
  const integration = await readIntegration(integrations, { organizationId, integrationRef });
  const choose = (collections: string[]) => {
    return checkSettings(integrations, integration, { kind: 'mongodb', databaseName: 'shop', collections });
  };
  const settings = { kind: 'mongodb', databaseName: 'shop', collections: [] };
  for (const given of [{ settings }, { settings, credential }]) {
    const { items } = await lookUp(integrations, integration, given);
    test.same(
      items.map(({ name }) => name),
      ['carts', HIDDEN],
    );
  }
  const chosen = await choose(['orders']);
  test.match(chosen, { settings: { collections: ['orders'] }, discovery: { items: [{}, { name: HIDDEN }] } });
  const issues = [{ path: 'settings.collections.0', code: 'unknown_choice' }];
  await test.rejects(choose(['invoices']), { code: 'settings_invalid', issues });
  await test.rejects(choose([HIDDEN]), { code: 'settings_invalid', issues });
});
