import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Integration } from '../../../api/integrations/schema.ts';
import { expectSuccess, type Fields, ownerPath, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization, updateOrganization } from '../../support/fixtures.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql);

const at = (rest = '') => ownerPath(org, `/integrations${rest}`);
const create = (fields: Fields = {}) =>
  app.owner.post<Integration>(at(), { key: `k-${randomUUID().slice(0, 8)}`, provider: 'stripe', ...fields });
const remove = (id: string) => app.owner.delete<Integration>(at(`/${id}`));

t.test('a provider that the organization does not allow is 403', async (t) => {
  await updateOrganization(sql.api, org, { constraints: { allowedIntegrations: ['github'] } });
  t.equal(refusalOf(await create()), '403 provider_forbidden not_allowed');
  const { id } = expectSuccess(await create({ provider: 'github' }), 201);
  await updateOrganization(sql.api, org, { constraints: { allowedIntegrations: [] } });
  expectSuccess(await remove(id));
});

t.test('a provider whose domain the organization blocks is 403', async (t) => {
  for (const domain of ['stripe.com', 'API.Stripe.com.']) {
    await updateOrganization(sql.api, org, { constraints: { blockedDomains: [domain] } });
    t.equal(refusalOf(await create({ provider: 'stripe' })), '403 provider_forbidden blocked', domain);
  }
  await updateOrganization(sql.api, org, { constraints: { blockedDomains: ['ripe.com', 'x.api.stripe.com'] } });
  const { id } = expectSuccess(await create({ provider: 'stripe' }), 201);
  await updateOrganization(sql.api, org, { constraints: { blockedDomains: [] } });
  expectSuccess(await remove(id));
});
