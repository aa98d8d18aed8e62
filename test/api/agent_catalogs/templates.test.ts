import t from 'tap';
import type { AgentCatalog } from '../../../api/agent_catalogs/schema.ts';
import { builtinCatalog, catalogRevision, publishBuiltinCatalog } from '../../../engine/catalog/index.ts';
import { startTestApp } from '../../support/app.ts';
import { changedCatalog, publishCatalog } from '../../support/catalogs.ts';
import { makeOrganization } from '../../support/owner_api.ts';

const builtin = builtinCatalog();
const provision = (organizationId: string) => `/organizations/${organizationId}/agent-profiles/provision`;

t.test('without a published catalog templates and provisioning are 503', async (t) => {
  const app = await startTestApp(t);
  const none = { status: 503, code: 'request_failed' };
  t.match(await app.owner.get('/agent-profile-templates'), none);
  const { id } = await makeOrganization(app.owner);
  t.match(await app.owner.post(provision(id), { departments: [] }), none);
  t.match(await app.owner.post(provision(id), { departments: [], revision: '0'.repeat(64) }), {
    status: 404,
    code: 'request_failed',
  });
});

t.test('the templates are those that were published last', async (t) => {
  const app = await startTestApp(t);
  await publishBuiltinCatalog(app.services.db);
  const first = await app.owner.get<AgentCatalog>('/agent-profile-templates');
  t.match(first, { status: 200, data: { revision: catalogRevision(builtin) } });
  t.strictSame(first.data.catalog, builtin);
  const next = changedCatalog('growth', (template) => Object.assign(template, { name: 'Growth team' }));
  const revision = await publishCatalog(app, next);
  t.strictSame((await app.owner.get('/agent-profile-templates')).data, { revision, catalog: next });
  await publishCatalog(app, builtin);
  t.match(await app.owner.get('/agent-profile-templates'), { data: { revision } }, 'an old one does not come back');
  t.match(await app.owner.get('/agent-profile-templates', { query: { revision } }), { status: 400 });
});
