import t from 'tap';
import type { AgentProfile } from '../../../api/agent_profiles/schema.ts';
import { publishBuiltinCatalog } from '../../../engine/catalog/index.ts';
import { startTestApp } from '../../support/app.ts';
import { makeOrganization, makeProfile } from '../../support/owner_api.ts';

const app = await startTestApp(t);
const { owner } = app;
await publishBuiltinCatalog(app.services.db);
const profiles = (organizationId: string, id = '') =>
  `/organizations/${organizationId}/agent-profiles${id && `/${id}`}`;

t.test('a deleted profile is gone at once, and a repeat is 404', async (t) => {
  const { id } = await makeOrganization(owner);
  const profile = await makeProfile(owner, id);
  const path = profiles(id, profile.id);
  const deleted = await owner.delete<AgentProfile>(path);
  t.match(deleted, { status: 200, data: { id: profile.id, status: 'disabled' } });
  const missing = { status: 404, code: 'agent_profile_not_found' };
  t.match(await owner.delete(path), missing);
  t.match(await owner.get(path), missing);
  t.match(await owner.patch(path, { status: 'enabled' }), missing);
  t.strictSame((await owner.get(profiles(id))).data, []);
});
