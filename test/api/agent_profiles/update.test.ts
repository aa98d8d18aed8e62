import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { AgentProfile } from '../../../api/agent_profiles/schema.ts';
import type { Organization } from '../../../api/organizations/schema.ts';
import { startTestApp } from '../../support/app.ts';
import { createClient, issuePaths } from '../../support/http.ts';
import { makeOrganization, makeProfile } from '../../support/owner_api.ts';

const { owner, url } = await startTestApp(t);

const profiles = (organizationId: string, id = '') =>
  `/organizations/${organizationId}/agent-profiles${id && `/${id}`}`;
const epochOf = async (id: string) => (await owner.get<Organization>(`/organizations/${id}`)).data.authorizationEpoch;

t.test('a patch merges: what it leaves out stays, null brings a default back, lists are replaced', async (t) => {
  const { id: organizationId } = await makeOrganization(owner);
  const before = await makeProfile(owner, organizationId, {
    key: 'merged',
    config: {
      maxConcurrentRuns: 9,
      skillKeys: ['a', 'b'],
      toolPolicyKeys: ['x'],
      runtime: { model: 'big', reasoningEffort: 'high' },
    },
  });
  const path = profiles(organizationId, before.id);
  const patch = async (body: unknown) => (await owner.patch<AgentProfile>(path, body)).data;
  t.strictSame(await patch({}), before);

  const changed = await patch({ name: 'Other', config: { skillKeys: ['c'], runtime: { model: null } } });
  t.strictSame(changed, {
    ...before,
    name: 'Other',
    config: { ...before.config, skillKeys: ['c'], runtime: { model: 'default', reasoningEffort: 'high' } },
    updatedAt: changed.updatedAt,
  });
  t.ok(changed.updatedAt > before.updatedAt);

  const uris = { rootUri: `org://${organizationId}/a`, instructionsUri: `org://${organizationId}/b` };
  t.match(await patch(uris), uris);
  const reset = await patch({ config: null, rootUri: null, instructionsUri: null });
  const fresh = await makeProfile(owner, organizationId, { key: 'fresh' });
  const root = `org://${organizationId}/profiles/merged`;
  t.strictSame(reset.config, { ...fresh.config, memoryRootUri: `${root}/memory` });
  t.match(reset, { rootUri: root, instructionsUri: `${root}/instructions.md` });
});

t.test('kind and department change together', async (t) => {
  const { id } = await makeOrganization(owner);
  const profile = await makeProfile(owner, id, { kind: 'department', department: 'growth' });
  const path = profiles(id, profile.id);
  const refused = { status: 400, code: 'validation_failed' };
  t.match(await owner.patch(path, { kind: 'chat' }), refused);
  t.match(await owner.patch(path, { department: null }), refused);
  t.match(await owner.patch(path, { department: 'support' }), { status: 200, data: { department: 'support' } });
  t.match(await owner.patch(path, { kind: 'chat', department: null }), { data: { kind: 'chat', department: null } });
  t.match(await owner.patch(path, { department: 'growth' }), refused);
});

t.test('a patch refuses unknown fields, foreign URIs, and null for what cannot be without', async (t) => {
  const { id } = await makeOrganization(owner);
  const profile = await makeProfile(owner, id);
  const path = profiles(id, profile.id);
  const wrong = await owner.patch(path, {
    organizationId: id,
    key: null,
    name: null,
    kind: null,
    status: null,
    config: { runtime: { other: 1 }, catalogSource: { templateKey: 'chat' }, limits: {} },
  });
  t.match(wrong, { status: 400, code: 'validation_failed' });
  t.strictSame(issuePaths(wrong), [
    'config.catalogSource.revision',
    'config.limits',
    'config.runtime.other',
    'key',
    'kind',
    'name',
    'organizationId',
    'status',
  ]);
  const foreign = await owner.patch(path, { config: { memoryRootUri: `org://${randomUUID()}/x` } });
  t.strictSame(issuePaths(foreign), ['config.memoryRootUri']);
  t.strictSame((await owner.get(path)).data, profile);
});

t.test(
  'a changed status or tool policy, and a new profile, raise the organization’s epoch; nothing else does',
  async (t) => {
    const { id } = await makeOrganization(owner);
    t.equal(await epochOf(id), 1);
    const profile = await makeProfile(owner, id);
    t.equal(await epochOf(id), 2);
    const epochAfter = async (body: unknown) => {
      t.match(await owner.patch(profiles(id, profile.id), body), { status: 200 });
      return epochOf(id);
    };
    t.equal(await epochAfter({ name: 'Other', config: { maxConcurrentRuns: 2, runtime: { model: 'm' } } }), 2);
    t.equal(await epochAfter({ config: { toolPolicyKeys: ['a'] } }), 3);
    t.equal(await epochAfter({ config: { toolPolicyKeys: ['a'] } }), 3, 'the same');
    t.equal(await epochAfter({ status: 'disabled' }), 4);
    t.equal(await epochAfter({ status: 'disabled' }), 4, 'the same');
    t.equal(await epochAfter({ status: 'enabled', config: { toolPolicyKeys: null } }), 5);
    await owner.delete(profiles(id, profile.id));
    t.equal(await epochOf(id), 6);
  },
);

t.test('in open mode nobody without the owner’s token gives a profile more tools', async (t) => {
  const nobody = createClient(url);
  const { id: organizationId } = await makeOrganization(owner);
  const department = { kind: 'department', department: 'support' };
  const before = await makeProfile(owner, organizationId, { key: 'kept', ...department });
  const path = profiles(organizationId, before.id);
  for (const body of [
    { config: { toolPolicyKeys: ['integrations.propose'] } },
    { config: { toolPolicyKeys: null } },
    { config: null },
    { department: 'growth' },
    { kind: 'operator', department: null },
  ]) {
    t.match(await nobody.patch(path, body), { status: 401, code: 'owner_unauthorized' }, JSON.stringify(body));
  }
  t.strictSame((await nobody.get<AgentProfile>(path)).data, before);
  const made = { key: 'made', name: 'Made', ...department };
  const withPolicy = { ...made, config: { toolPolicyKeys: ['integrations.propose'] } };
  t.match(await nobody.post(profiles(organizationId), withPolicy), { status: 401, code: 'owner_unauthorized' });
  t.match(await nobody.post(profiles(organizationId), made), { status: 201, data: { config: { toolPolicyKeys: [] } } });
  t.match(await nobody.patch(path, { status: 'disabled', name: 'Other' }), { status: 200 });
  t.match(await owner.patch(path, { config: { toolPolicyKeys: ['integrations.read'] } }), { status: 200 });
});
