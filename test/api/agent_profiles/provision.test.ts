import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { AgentProfile } from '../../../api/agent_profiles/schema.ts';
import type { Organization } from '../../../api/organizations/schema.ts';
import { builtinCatalog, catalogRevision, publishBuiltinCatalog } from '../../../engine/catalog/index.ts';
import { startTestApp } from '../../support/app.ts';
import { changedCatalog, publishCatalog } from '../../support/catalogs.ts';
import { issuePaths } from '../../support/http.ts';
import { makeOrganization, makeProfile, makeTask } from '../../support/owner_api.ts';
import { wakesPulls } from '../../support/wakes.ts';

type Provisioned = Readonly<{ revision: string; profiles: AgentProfile[]; disabledProfileIds: string[] }>;

const ALL = ['growth', 'engineering', 'support'] as const;
const builtin = builtinCatalog();
const builtinRevision = catalogRevision(builtin);

const keysOf = (profiles: readonly AgentProfile[]) => profiles.map((profile) => profile.key);

function byKey(profiles: readonly AgentProfile[], key: string): AgentProfile {
  const found = profiles.find((profile) => profile.key === key);
  if (!found) throw new Error(`no profile ${key}`);
  return found;
}

const app = await startTestApp(t);
const { owner } = app;
await publishBuiltinCatalog(app.services.db);

function provision(organizationId: string, body: unknown) {
  return owner.post<Provisioned>(`/organizations/${organizationId}/agent-profiles/provision`, body);
}
const list = async (id: string) => (await owner.get<AgentProfile[]>(`/organizations/${id}/agent-profiles`)).data;
const patch = (profile: AgentProfile, body: unknown) =>
  owner.patch<AgentProfile>(`/organizations/${profile.organizationId}/agent-profiles/${profile.id}`, body);
const organization = async (id: string) => (await owner.get<Organization>(`/organizations/${id}`)).data;

t.test('makes operator, chat and the selected departments, pinned to the revision', async (t) => {
  const { id } = await makeOrganization(owner);
  const reply = await provision(id, { departments: ['growth', 'support'] });
  t.match(reply, { status: 200, data: { revision: builtinRevision, disabledProfileIds: [] } });
  t.strictSame(keysOf(reply.data.profiles), ['operator', 'chat', 'growth', 'support']);
  for (const profile of reply.data.profiles) {
    const template = builtin.profiles.find((one) => one.key === profile.key);
    t.match(profile, {
      organizationId: id,
      name: template?.name,
      kind: template?.kind,
      department: template && 'department' in template ? template.department : null,
      status: 'enabled',
      rootUri: `org://${id}/profiles/${profile.key}`,
    });
    t.strictSame(profile.config, {
      ...template?.config,
      memoryRootUri: `org://${id}/profiles/${profile.key}/memory`,
      skillKeys: [...builtin.commonSkillKeys, ...(template?.skillKeys ?? [])],
      mcpServerKeys: [...builtin.commonMcpServerKeys, ...(template?.mcpServerKeys ?? [])],
      catalogSource: { templateKey: profile.key, revision: builtinRevision },
    });
  }
  const stored = await list(id);
  t.strictSame(keysOf(stored).sort(), ['chat', 'growth', 'operator', 'support']);
  for (const profile of reply.data.profiles) t.strictSame(byKey(stored, profile.key), profile);
});

t.test('is idempotent: a repeat changes nothing, epoch and times included', async (t) => {
  const { id } = await makeOrganization(owner);
  const first = await provision(id, { departments: ALL });
  const before = await organization(id);
  const again = await provision(id, { departments: ALL, revision: builtinRevision });
  t.strictSame(again.data, first.data);
  t.strictSame(await organization(id), before);
});

t.test('twice at once makes each profile once', async (t) => {
  const { id } = await makeOrganization(owner);
  const replies = await Promise.all([1, 2, 3].map(() => provision(id, { departments: ALL })));
  for (const reply of replies) t.strictSame(reply.data, replies[0]?.data);
  t.equal((await list(id)).length, 5);
});

t.test('an Idempotency-Key returns the first response again', async (t) => {
  const { id } = await makeOrganization(owner);
  const path = `/organizations/${id}/agent-profiles/provision`;
  const headers = { 'idempotency-key': 'provision' };
  const first = await owner.post<Provisioned>(path, { departments: ['growth'] }, { headers });
  await patch(byKey(first.data.profiles, 'growth'), { status: 'disabled' });
  t.strictSame((await owner.post(path, { departments: ['growth'] }, { headers })).data, first.data);
  t.match(byKey(await list(id), 'growth'), { status: 'disabled' });
});

t.test('disables departments that are not selected and lists all such; selecting them enables them', async (t) => {
  const { id } = await makeOrganization(owner);
  const { profiles } = (await provision(id, { departments: ALL })).data;
  const engineering = byKey(profiles, 'engineering');
  const task = await makeTask(owner, engineering);
  const support = byKey(profiles, 'support');
  await patch(support, { status: 'disabled' });

  const narrowed = await provision(id, { departments: ['growth'] });
  t.strictSame(keysOf(narrowed.data.profiles), ['operator', 'chat', 'growth']);
  t.strictSame(narrowed.data.disabledProfileIds, [engineering.id, support.id].sort());
  t.match(byKey(await list(id), 'engineering'), { id: engineering.id, status: 'disabled' });
  const path = `/organizations/${id}/tasks/${task.id}`;
  t.match(await owner.get(path), { data: { status: 'blocked', state: { blockers: [{ kind: 'profile' }] } } });

  t.ok(await wakesPulls(app, () => provision(id, { departments: ['engineering'] })));
  t.match(byKey(await list(id), 'engineering'), { id: engineering.id, status: 'enabled' });
  t.match(await owner.get(path), { data: { status: 'pending', state: { blockers: [] } } });
  const none = await provision(id, { departments: [] });
  t.equal(none.data.disabledProfileIds.length, 3);
  t.strictSame(keysOf(none.data.profiles), ['operator', 'chat']);
});

t.test('enables an operator or chat that was disabled', async (t) => {
  const { id } = await makeOrganization(owner);
  const { profiles } = (await provision(id, { departments: [] })).data;
  await patch(byKey(profiles, 'chat'), { status: 'disabled' });
  t.match((await provision(id, { departments: [] })).data.profiles, [{ key: 'operator' }, { status: 'enabled' }]);
});

t.test('leaves profiles made by hand alone', async (t) => {
  const { id } = await makeOrganization(owner);
  const own = await makeProfile(owner, id, { key: 'own', kind: 'department', department: 'growth' });
  const off = await makeProfile(owner, id, {
    key: 'off',
    kind: 'department',
    department: 'support',
    status: 'disabled',
  });
  const { data } = await provision(id, { departments: ['engineering'] });
  t.strictSame(data.disabledProfileIds, []);
  const stored = await list(id);
  t.strictSame(byKey(stored, 'own'), own);
  t.strictSame(byKey(stored, 'off'), off);
});

t.test('a template key held by a profile made by hand is 409, and changes nothing', async (t) => {
  const { id } = await makeOrganization(owner);
  const own = await makeProfile(owner, id, { key: 'support', kind: 'chat' });
  const refused = await provision(id, { departments: ALL });
  t.match(refused, { status: 409, code: 'state_conflict' });
  t.match(refused.body.error.issues, [{ path: 'departments', code: 'key_held', message: /support/ }]);
  t.strictSame(await list(id), [own]);
  t.match(
    await provision(id, { departments: ['growth'] }),
    { status: 200 },
    'where it is not needed it does not matter',
  );
  await owner.delete(`/organizations/${id}/agent-profiles/${own.id}`);
  t.match(await provision(id, { departments: ALL }), { status: 200 });
});

t.test('pins to another revision: what the template changed follows, what a person edited does not', async (t) => {
  const { id } = await makeOrganization(owner);
  const first = (await provision(id, { departments: ['growth', 'support'] })).data;
  const growth = byKey(first.profiles, 'growth');
  await patch(growth, {
    name: 'Our growth team',
    config: { memoryRootUri: `org://${id}/elsewhere`, maxConcurrentRuns: 17 },
  });
  const catalog = changedCatalog('growth', (template) => {
    Object.assign(template, { name: 'Growth 2' });
    Object.assign(template.config, { maxConcurrentRuns: 8, toolPolicyKeys: ['context.read', 'new.tool'] });
  });
  for (const template of catalog.profiles) if (template.key === 'support') template.name = 'Support 2';
  catalog.commonSkillKeys.push('new-skill');
  const revision = await publishCatalog(app, catalog);

  const { data } = await provision(id, { departments: ['growth', 'support'] });
  t.equal(data.revision, revision);
  t.match(byKey(data.profiles, 'growth'), {
    id: growth.id,
    name: 'Our growth team',
    config: {
      maxConcurrentRuns: 8,
      toolPolicyKeys: ['context.read', 'new.tool'],
      memoryRootUri: `org://${id}/elsewhere`,
      catalogSource: { templateKey: 'growth', revision },
    },
  });
  t.ok(byKey(data.profiles, 'growth').config.skillKeys.includes('new-skill'));
  t.match(byKey(data.profiles, 'support'), { name: 'Support 2' });

  const back = (await provision(id, { departments: ['growth', 'support'], revision: builtinRevision })).data;
  t.match(byKey(back.profiles, 'growth'), { name: 'Our growth team' });
  t.strictSame(byKey(back.profiles, 'support').config, byKey(first.profiles, 'support').config);
  t.match(byKey(back.profiles, 'support'), { name: byKey(first.profiles, 'support').name });
});

t.test('never widens tool policies that were narrowed, by whatever revisions it goes', async (t) => {
  const { id } = await makeOrganization(owner);
  const pin = async (revision: string) => {
    const { data } = await provision(id, { departments: ['growth'], revision });
    return byKey(data.profiles, 'growth').config.toolPolicyKeys;
  };
  const policies = (...toolPolicyKeys: string[]) =>
    publishCatalog(
      app,
      changedCatalog('growth', (template) => Object.assign(template.config, { toolPolicyKeys })),
    );
  const wide = await policies('a', 'b', 'c');
  const narrow = await policies('a', 'b');
  const other = await policies('b', 'd');

  t.strictSame(await pin(wide), ['a', 'b', 'c']);
  const growth = byKey(await list(id), 'growth');
  await patch(growth, { config: { toolPolicyKeys: ['b', 'a'] } });
  t.strictSame(await pin(wide), ['a', 'b']);
  t.strictSame(await pin(narrow), ['a', 'b'], 'all that this template names');
  t.strictSame(await pin(wide), ['a', 'b'], 'and still not what was taken away');
  t.strictSame(await pin(other), ['b'], 'nor anything new');
  t.strictSame(await pin(wide), ['b']);

  await patch(growth, { config: { toolPolicyKeys: ['a', 'b', 'c'] } });
  t.strictSame(await pin(other), ['b', 'd'], 'given back by a person, they follow the template again');
  t.strictSame(await pin(wide), ['a', 'b', 'c']);
});

t.test('a widened tool policy is made equal to the template', async (t) => {
  const { id } = await makeOrganization(owner);
  const { profiles } = (await provision(id, { departments: [], revision: builtinRevision })).data;
  const chat = byKey(profiles, 'chat');
  await patch(chat, { config: { toolPolicyKeys: [...chat.config.toolPolicyKeys, 'everything'] } });
  const again = (await provision(id, { departments: [], revision: builtinRevision })).data;
  t.strictSame(byKey(again.profiles, 'chat').config.toolPolicyKeys, chat.config.toolPolicyKeys);
});

t.test('finds its profiles under other keys, and sets kind and department right', async (t) => {
  const { id } = await makeOrganization(owner);
  const { profiles } = (await provision(id, { departments: ['growth'] })).data;
  const growth = byKey(profiles, 'growth');
  await patch(growth, { key: 'marketing', department: 'support' });
  const own = await makeProfile(owner, id, { key: 'growth', kind: 'chat' });
  const again = (await provision(id, { departments: ['growth'] })).data;
  t.match(byKey(again.profiles, 'marketing'), { id: growth.id, kind: 'department', department: 'growth' });
  t.strictSame(again.disabledProfileIds, []);
  t.strictSame(byKey(await list(id), 'growth'), own);
});

t.test('makes a deleted profile anew', async (t) => {
  const { id } = await makeOrganization(owner);
  const { profiles } = (await provision(id, { departments: ['growth'] })).data;
  const growth = byKey(profiles, 'growth');
  await owner.delete(`/organizations/${id}/agent-profiles/${growth.id}`);
  const again = (await provision(id, { departments: ['growth'] })).data;
  t.not(byKey(again.profiles, 'growth').id, growth.id);
  t.strictSame(again.disabledProfileIds, []);
});

t.test('new profiles and changed tool policies raise the epoch', async (t) => {
  const { id } = await makeOrganization(owner);
  await provision(id, { departments: [], revision: builtinRevision });
  const { authorizationEpoch } = await organization(id);
  t.ok(authorizationEpoch > 1);
  const revision = await publishCatalog(
    app,
    changedCatalog('chat', ({ config }) => Object.assign(config, { toolPolicyKeys: ['x'] })),
  );
  await provision(id, { departments: [], revision });
  t.equal((await organization(id)).authorizationEpoch, authorizationEpoch + 1);
});

t.test('bad requests are validation_failed, what is missing is request_failed', async (t) => {
  const { id } = await makeOrganization(owner);
  const refused = { status: 400, code: 'validation_failed' };
  t.strictSame(issuePaths(await provision(id, undefined)), ['departments']);
  for (const body of [
    { departments: ['sales'] },
    { departments: ['growth', 'growth'] },
    { departments: 'growth' },
    { departments: [], revision: 'latest' },
    { departments: [], revision: null },
    { departments: [], revision: builtinRevision.toUpperCase() },
    { departments: [], force: true },
  ]) {
    t.match(await provision(id, body), refused, JSON.stringify(body));
  }
  t.match(await provision('acme', { departments: [] }), refused);
  const missing = { status: 404, code: 'request_failed' };
  const unknown = await provision(id, { departments: [], revision: 'f'.repeat(64) });
  t.match(unknown, missing);
  t.strictSame(issuePaths(unknown), ['revision']);
  t.match(await provision(randomUUID(), { departments: [] }), missing);
  const gone = await makeOrganization(owner);
  await owner.delete(`/organizations/${gone.id}`);
  t.match(await provision(gone.id, { departments: [] }), missing);
  t.strictSame(await list(id), []);
});
