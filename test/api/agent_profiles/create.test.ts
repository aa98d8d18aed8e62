import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { AgentProfile } from '../../../api/agent_profiles/schema.ts';
import { builtinCatalog, catalogRevision, publishBuiltinCatalog } from '../../../engine/catalog/index.ts';
import { startTestApp } from '../../support/app.ts';
import { issuePaths } from '../../support/http.ts';
import { makeOrganization, makeProfile } from '../../support/owner_api.ts';

const app = await startTestApp(t);
const { owner } = app;
await publishBuiltinCatalog(app.services.db);
const revision = catalogRevision(builtinCatalog());

const profiles = (organizationId: string, id = '') =>
  `/organizations/${organizationId}/agent-profiles${id && `/${id}`}`;

t.test('a new profile has every default', async (t) => {
  const { id: organizationId } = await makeOrganization(owner);
  const made = await owner.post<AgentProfile>(profiles(organizationId), {
    key: 'helper',
    name: ' Helper ',
    kind: 'operator',
  });
  t.equal(made.status, 201);
  const { id, createdAt, updatedAt, ...rest } = made.data;
  const root = `org://${organizationId}/profiles/helper`;
  t.strictSame(rest, {
    organizationId,
    key: 'helper',
    name: 'Helper',
    kind: 'operator',
    department: null,
    status: 'enabled',
    rootUri: root,
    instructionsUri: `${root}/instructions.md`,
    config: {
      defaultRunMode: 'execute',
      maxConcurrentRuns: 5,
      toolPolicyKeys: [],
      memoryRootUri: `${root}/memory`,
      runtime: { model: 'default', reasoningEffort: 'medium' },
      skillKeys: [],
      mcpServerKeys: [],
    },
  });
  t.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  t.match(createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  t.equal(updatedAt, createdAt);
  t.strictSame((await owner.get(profiles(organizationId, id.toUpperCase()))).data, made.data);
});

t.test('a new profile takes every field that it is given', async (t) => {
  const { id } = await makeOrganization(owner);
  const body = {
    key: 'growth',
    name: 'Growth',
    kind: 'department',
    department: 'growth',
    status: 'disabled',
    rootUri: `org://${id}/growth`,
    instructionsUri: `org://${id}/growth/README.md`,
    config: {
      defaultRunMode: 'plan',
      maxConcurrentRuns: 2,
      toolPolicyKeys: ['context.read', 'mcp:mail_send'],
      memoryRootUri: `org://${id}/growth/memory`,
      runtime: { model: 'small/1.5' },
      skillKeys: ['writing'],
      mcpServerKeys: ['mail'],
      catalogSource: { templateKey: 'growth', revision },
    },
  };
  const made = await owner.post<AgentProfile>(profiles(id), body);
  t.match(made, { status: 201, data: body });
  t.equal(made.data.config.runtime.reasoningEffort, 'medium');
});

t.test('department goes with kind department alone', async (t) => {
  const { id } = await makeOrganization(owner);
  const post = (fields: object) => owner.post(profiles(id), { key: `k-${randomUUID()}`, name: 'K', ...fields });
  for (const fields of [
    { kind: 'department' },
    { kind: 'department', department: null },
    { kind: 'department', department: 'sales' },
    { kind: 'operator', department: 'growth' },
    { kind: 'chat', department: 'support' },
  ]) {
    const reply = await post(fields);
    t.match(reply, { status: 400, code: 'validation_failed' }, JSON.stringify(fields));
    t.strictSame(issuePaths(reply), ['department']);
  }
  t.match(await post({ kind: 'operator', department: null }), { status: 201 });
});

t.test('a create names every wrong field at once', async (t) => {
  const { id } = await makeOrganization(owner);
  const other = await makeOrganization(owner);
  const wrong = await owner.post(profiles(id), {
    key: 'Not A Key',
    name: ' ',
    kind: 'boss',
    status: 'asleep',
    rootUri: 7,
    id: randomUUID(),
    config: {
      defaultRunMode: 'dream',
      maxConcurrentRuns: 0,
      toolPolicyKeys: ['a', 'a'],
      runtime: { model: '', temperature: 1 },
      skillKeys: ['with space'],
      catalogSource: { templateKey: 'growth', revision: 'latest' },
      colour: 'red',
    },
  });
  t.match(wrong, { status: 400, code: 'validation_failed' });
  t.strictSame(issuePaths(wrong), [
    'config.catalogSource.revision',
    'config.colour',
    'config.defaultRunMode',
    'config.maxConcurrentRuns',
    'config.runtime.model',
    'config.runtime.temperature',
    'config.skillKeys.0',
    'config.toolPolicyKeys',
    'id',
    'key',
    'kind',
    'name',
    'rootUri',
    'status',
  ]);
  t.strictSame(issuePaths(await owner.post(profiles(id))), ['key', 'kind', 'name']);
  const foreign = `org://${other.id}/x`;
  const uris = { rootUri: foreign, instructionsUri: foreign, config: { memoryRootUri: foreign } };
  const refused = await owner.post(profiles(id), { key: 'uris', name: 'Uris', kind: 'chat', ...uris });
  t.match(refused, { status: 400, code: 'validation_failed' });
  t.strictSame(issuePaths(refused), ['config.memoryRootUri', 'instructionsUri', 'rootUri']);
});

t.test('a catalogSource names a template of a published catalog', async (t) => {
  const { id } = await makeOrganization(owner);
  const post = (templateKey: string, of: string) =>
    owner.post<AgentProfile>(profiles(id), {
      key: `k-${randomUUID()}`,
      name: 'K',
      kind: 'chat',
      config: { catalogSource: { templateKey, revision: of } },
    });
  const refused = { status: 400, code: 'validation_failed' };
  t.match(await post('chat', '0'.repeat(64)), refused);
  t.match(await post('nobody', revision), refused);
  const { data } = await post('chat', revision);
  const path = profiles(id, data.id);
  const source = { templateKey: 'nobody', revision };
  const patched = await owner.patch(path, { config: { catalogSource: source } });
  t.match(patched, refused);
  t.strictSame(issuePaths(patched), ['config.catalogSource']);
  t.match(await owner.patch(path, { name: 'Same', config: data.config }), { status: 200 }, 'what was read can be sent');
  const detached = await owner.patch<AgentProfile>(path, { config: { catalogSource: null } });
  t.equal(detached.status, 200);
  t.notOk('catalogSource' in detached.data.config);
});

t.test('a key is held once in an organization', async (t) => {
  const first = await makeOrganization(owner);
  const second = await makeOrganization(owner);
  const inUse = { status: 409, code: 'state_conflict' };
  const body = { key: 'same', name: 'Same', kind: 'chat' };
  const made = await owner.post<AgentProfile>(profiles(first.id), body);
  t.match(made, { status: 201 });
  t.match(await owner.post(profiles(second.id), body), { status: 201 });
  const refused = await owner.post(profiles(first.id), body);
  t.match(refused, inUse);
  t.strictSame(issuePaths(refused), ['key']);
  const other = await makeProfile(owner, first.id);
  t.match(await owner.patch(profiles(first.id, other.id), { key: 'same' }), inUse);
  t.match(await owner.patch(profiles(first.id, made.data.id), { key: 'same' }), { status: 200 });
  t.match(await owner.delete(profiles(first.id, made.data.id)), { status: 200 });
  t.match(await owner.post(profiles(first.id), body), { status: 201 }, 'a deleted one’s key is free');
});

t.test('of creates at once with one key, one wins', async (t) => {
  const { id } = await makeOrganization(owner);
  const body = { key: 'race', name: 'Race', kind: 'chat' };
  const replies = await Promise.all(Array.from({ length: 6 }, () => owner.post(profiles(id), body)));
  t.strictSame(replies.map((reply) => reply.status).sort(), [201, 409, 409, 409, 409, 409]);
});

t.test('a create sent again with its Idempotency-Key is returned again', async (t) => {
  const { id } = await makeOrganization(owner);
  const headers = { 'idempotency-key': 'profile-once' };
  const body = { key: 'once', name: 'Once', kind: 'chat' };
  const first = await owner.post<AgentProfile>(profiles(id), body, { headers });
  t.match(await owner.post(profiles(id), body, { headers }), { status: 201, data: first.data });
  t.match(await owner.post(profiles(id), { ...body, key: 'twice' }, { headers }), {
    status: 409,
    code: 'idempotency_key_reused',
  });
  t.equal((await owner.get<AgentProfile[]>(profiles(id))).data.length, 1);
});

t.test('what is not there is 404, with the code of what is missing', async (t) => {
  const { id } = await makeOrganization(owner);
  const other = await makeOrganization(owner);
  const foreign = await makeProfile(owner, other.id);
  for (const profile of [randomUUID(), foreign.id]) {
    const missing = { status: 404, code: 'agent_profile_not_found' };
    t.match(await owner.get(profiles(id, profile)), missing);
    t.match(await owner.patch(profiles(id, profile), { name: 'x' }), missing);
    t.match(await owner.delete(profiles(id, profile)), missing);
  }
  const nowhere = randomUUID();
  const missing = { status: 404, code: 'organization_not_found' };
  t.match(await owner.get(profiles(nowhere)), missing);
  t.match(await owner.post(profiles(nowhere), { key: 'a', name: 'A', kind: 'chat' }), missing);
  t.match(await owner.get(profiles(nowhere, foreign.id)), missing);
  t.match(await owner.patch(profiles(nowhere, foreign.id), { name: 'x' }), missing);
  t.match(await owner.delete(profiles(nowhere, foreign.id)), missing);
  t.match(await owner.get(profiles(id, 'helper')), { status: 400, code: 'validation_failed' });
  t.match(await owner.get(profiles(other.id, foreign.id)), { data: { status: 'enabled' } });
});
