import { randomUUID } from 'node:crypto';
import t from 'tap';
import { apiEndpoints } from '../../../api/app.ts';
import type { AuditEntry } from '../../../api/audit/schema.ts';
import type { Chat } from '../../../api/chats/schema.ts';
import { publishBuiltinCatalog } from '../../../engine/catalog/index.ts';
import { integrationConfig } from '../../engine/integrations/support.ts';
import { openServer } from '../../engine/providers/support.ts';
import { actionDecisions } from '../../support/action_decisions.ts';
import { expectSuccess, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { auditEntries } from '../../support/audit_fixtures.ts';
import { createChat, createChatOrganization, exchange } from '../../support/chat_fixtures.ts';
import {
  addDependency,
  createTask,
  createTestOrganization,
  failRun,
  runNew,
  setWorkDispatch,
  type TestOrganization,
} from '../../support/fixtures.ts';
import { createItem } from '../../support/inbox_fixtures.ts';
import { integrationDecisions } from '../../support/integration_decisions.ts';
import { startIssuer } from '../../support/jwt.ts';
import { onboardingDecisions } from '../../support/onboarding_decisions.ts';
import { makeOrganization } from '../../support/owner_api.ts';
import { openProtectedServer } from '../../support/protected_server.ts';
import { scheduleDecisions } from '../../support/schedule_decisions.ts';
import { transition } from '../../support/transitions.ts';

const issuer = await startIssuer(t);
const mcp = await openProtectedServer(t);
const stripe = await openServer(t, () => ({ id: 'acct_1Abcdefgh' }));
const { integrations } = integrationConfig({ origins: { 'https://api.stripe.com': stripe.origin } });
const config = { ownerAuth: issuer.ownerAuth, integrations, allowPrivateAddresses: true };
const app = await startTestApp(t, { config });
const sql = sqlOf(app);
await publishBuiltinCatalog(app.services.db);
const anna = app.owner.as(await issuer.token('anna'));
/** The same database behind a loopback port without authentication: a platform operator. */
const { owner: operator } = await startTestApp(t, { database: app.database });

type Made = Readonly<{ organizationId: string; path: string; body?: unknown; entry: Record<string, unknown> }>;

const memberOf = (organizationId: string, subject = 'anna', role = 'owner') =>
  transition(sql.api, 'organization_member_put', { organizationId, subject, role });

async function org(): Promise<TestOrganization & { base: string }> {
  const made = await createTestOrganization(sql);
  await memberOf(made.organizationId);
  return { ...made, base: `/organizations/${made.organizationId}` };
}

async function item(kind: string): Promise<{ organizationId: string; base: string; id: string }> {
  const at = await org();
  const task = await createTask(sql, at);
  const { id } = await createItem(sql.api, at, task.id, { kind });
  return { ...at, id, base: `${at.base}/human-inbox/${id}` };
}

/** A call of each decision, ready to be made, and what its entry says. */
const decisions: Readonly<Record<string, () => Promise<Made>>> = {
  async createOrganization() {
    const organizationId = randomUUID();
    const body = { slug: `o-${organizationId}`, name: 'Acme' };
    const entry = {
      action: 'organization.create',
      subject_kind: 'organization',
      subject_id: organizationId,
      arguments: body,
    };
    return { organizationId, path: `/organizations/${organizationId}`, body, entry };
  },
  async updateOrganization() {
    const { organizationId, base: path } = await org();
    const body = { name: 'Northern Light' };
    const entry = { action: 'organization.update', subject_id: organizationId, arguments: body };
    return { organizationId, path: path.toUpperCase().replace('/ORGANIZATIONS', '/organizations'), body, entry };
  },
  async deleteOrganization() {
    const { organizationId, base: path } = await org();
    return { organizationId, path, entry: { action: 'organization.delete', subject_id: organizationId } };
  },
  async setWorkDispatch() {
    const { organizationId, base } = await org();
    const entry = { action: 'dispatch.stop', subject_kind: 'organization', subject_id: organizationId, arguments: {} };
    return { organizationId, path: `${base}/work-dispatch`, body: { stopped: true }, entry };
  },
  async putMember() {
    const { organizationId, base } = await org();
    const entry = {
      action: 'member.put',
      subject_kind: 'member',
      subject_id: 'a|b',
      arguments: { sub: 'a|b', role: 'viewer' },
    };
    return { organizationId, path: `${base}/members/a%7Cb`, body: { role: 'viewer' }, entry };
  },
  async deleteMember() {
    const { organizationId, base } = await org();
    await memberOf(organizationId, 'vic', 'viewer');
    const entry = { action: 'member.delete', subject_kind: 'member', subject_id: 'vic' };
    return { organizationId, path: `${base}/members/vic`, entry };
  },
  async createAgentProfile() {
    const { organizationId, base } = await org();
    const body = { key: 'growth', name: 'Growth', kind: 'department', department: 'growth' };
    const entry = {
      action: 'agent_profile.create',
      subject_kind: 'agent_profile',
      subject_id: String,
      arguments: body,
    };
    return { organizationId, path: `${base}/agent-profiles`, body, entry };
  },
  async updateAgentProfile() {
    const { organizationId, base, profileId } = await org();
    const body = { status: 'disabled' };
    const entry = { action: 'agent_profile.update', subject_id: profileId, arguments: { id: profileId, ...body } };
    return { organizationId, path: `${base}/agent-profiles/${profileId}`, body, entry };
  },
  async deleteAgentProfile() {
    const { organizationId, base, profileId } = await org();
    const entry = { action: 'agent_profile.delete', subject_id: profileId };
    return { organizationId, path: `${base}/agent-profiles/${profileId}`, entry };
  },
  async provisionAgentProfiles() {
    const { organizationId, base } = await org();
    const body = { departments: ['growth'] };
    const entry = {
      action: 'agent_profile.provision',
      subject_kind: 'organization',
      subject_id: organizationId,
      arguments: body,
    };
    return { organizationId, path: `${base}/agent-profiles/provision`, body, entry };
  },
  async createTask() {
    const { organizationId, base, profileId } = await org();
    const body = { title: 'A task', ownerAgentProfileId: profileId, spec: { objective: 'Do it' } };
    const entry = { action: 'task.create', subject_kind: 'task', subject_id: String, arguments: body };
    return { organizationId, path: `${base}/tasks`, body, entry };
  },
  async cancelTask() {
    const at = await org();
    const { id, identifier_number: number } = await createTask(sql, at);
    const entry = {
      action: 'task.cancel',
      subject_kind: 'task',
      subject_id: id,
      arguments: { taskRef: `T-${number}` },
    };
    return { organizationId: at.organizationId, path: `${at.base}/tasks/T-${number}/cancel`, entry };
  },
  async retryTask() {
    const at = await org();
    const run = await runNew(sql, at);
    await failRun(sql.api, run, { retryable: false });
    const entry = { action: 'task.retry', subject_kind: 'task', subject_id: run.taskId };
    return { organizationId: at.organizationId, path: `${at.base}/tasks/${run.taskId}/retry`, entry };
  },
  async deleteTaskDependency() {
    const at = await org();
    const [first, second] = [await createTask(sql, at), await createTask(sql, at)];
    await addDependency(sql.api, at, second.id, first.id);
    const entry = {
      action: 'dependency.delete',
      subject_kind: 'task',
      subject_id: second.id,
      arguments: { taskRef: second.id, dependsOnRef: first.id },
    };
    const path = `${at.base}/tasks/${second.id}/dependencies/${first.id}`;
    return { organizationId: at.organizationId, path, entry };
  },
  ...actionDecisions(sql, memberOf),
  ...scheduleDecisions(sql, org),
  ...integrationDecisions(sql, org, { mcp }),
  async respondToHumanInboxItem() {
    const { organizationId, base, id } = await item('question');
    const body = { response: 'prices.csv' };
    const entry = { action: 'inbox_item.respond', subject_kind: 'inbox_item', subject_id: id, arguments: body };
    return { organizationId, path: `${base}/respond`, body, entry };
  },
  async acknowledgeHumanInboxItem() {
    const { organizationId, base, id } = await item('notification');
    return { organizationId, path: `${base}/acknowledge`, entry: { action: 'inbox_item.acknowledge', subject_id: id } };
  },
  ...onboardingDecisions(sql, app.services.storage, memberOf),
  async createMessage() {
    const at = await createChatOrganization(sql);
    await memberOf(at.organizationId);
    const chat = await createChat(sql, at);
    const note = { id: 'note', kind: 'context_note', text: 'They like blue.', status: 'pending' };
    const approval = { id: 'approval', kind: 'approval', text: 'Send it?' };
    const { id: messageId } = await exchange(sql, at, chat.id, [note, approval]);
    const approvals = [
      { messageId, partId: 'note', approved: false },
      { messageId, partId: 'approval', approved: true },
    ];
    const path = `/organizations/${at.organizationId}/chats/${chat.id}/messages`;
    const body = { parts: [{ kind: 'text', text: 'Not for the log' }], answers: approvals };
    const entry = {
      action: 'approval.decide',
      subject_kind: 'message',
      subject_id: String,
      arguments: { chatId: chat.id, approvals },
    };
    return { organizationId: at.organizationId, path, body, entry };
  },
};

/** What owners write that decides nothing: words, uploads, and what keeps or ends a conversation. */
const NO_DECISIONS = [
  'cancelMessage',
  'createChat',
  'deleteChat',
  'deleteOnboardingSource',
  'discoverIntegration',
  'listIntegrationResources',
  'listIntegrationStores',
  'putChatAttachment',
  'putOnboardingSource',
  'putTaskInput',
  'refreshInsights',
  'retainContextSource',
  'updateChat',
];

const written = apiEndpoints().filter(({ audience, method }) => audience === 'owner' && method !== 'get');

t.test('whatever an owner writes is a decision, or is known not to be one', async (test) => {
  const sorted = (names: readonly string[]) => [...names].sort();
  const declared = written.filter(({ decision }) => decision).map(({ operationId }) => operationId);
  test.same(sorted(declared), sorted(Object.keys(decisions)));
  const others = written.filter(({ decision }) => !decision).map(({ operationId }) => operationId);
  test.same(sorted(others), NO_DECISIONS);
  const foreign = apiEndpoints().filter(({ audience, decision }) => audience !== 'owner' && decision);
  test.same(foreign, [], 'agents and workers decide nothing');
});

for (const { operationId, method } of written) {
  const make = decisions[operationId];
  if (!make) continue;
  t.test(`${operationId} leaves one entry`, async (test) => {
    const made = await make();
    const headers = { 'x-request-id': `request-${operationId}` };
    const reply = await anna.send<Record<string, unknown>>(method.toUpperCase(), made.path, made.body, { headers });
    test.ok(reply.status < 300, JSON.stringify(reply.body));
    const organizationId = made.organizationId || String(reply.data['organizationId']);
    const entries = await auditEntries(sql, organizationId);
    test.equal(entries.length, 1);
    test.match(entries[0], {
      organization_id: organizationId,
      actor_kind: 'owner',
      actor: 'anna',
      outcome: 'done',
      code: null,
      result: {},
      request_id: `request-${operationId}`,
      ...made.entry,
    });
    test.notMatch(JSON.stringify(entries), /Not for the log/);
  });
}

t.test('words alone are no decision', async (test) => {
  const at = await createChatOrganization(sql);
  const chat = await createChat(sql, at);
  const path = `/organizations/${at.organizationId}/chats/${chat.id}/messages`;
  expectSuccess(await operator.post<Chat>(path, { parts: [{ kind: 'text', text: 'Hello?' }] }), 202);
  test.same(await auditEntries(sql, at.organizationId), []);
});

t.test('an operator is written down as one, by how it was let in', async (test) => {
  const { id } = await makeOrganization(operator);
  test.match(await auditEntries(sql, id), [{ actor_kind: 'operator', actor: 'open' }]);
  const token = 'another-owner-token-of-the-tests-0123456789';
  const ownerAuth = { mode: 'token', tokens: [token] } as const;
  const byToken = await startTestApp(test, { database: app.database, config: { ownerAuth } });
  const other = await makeOrganization(byToken.owner.as(token));
  test.match(await auditEntries(sql, other.id), [{ actor_kind: 'operator', actor: 'token' }]);
  test.notMatch(JSON.stringify(await auditEntries(sql, other.id)), token);
});

t.test('a replay of an Idempotency-Key is no second decision, a repeat is', async (test) => {
  const at = await org();
  const { id } = await createTask(sql, at);
  const cancel = (key?: string) =>
    anna.post(`${at.base}/tasks/${id}/cancel`, undefined, key ? { headers: { 'idempotency-key': key } } : {});
  for (let time = 0; time < 3; time += 1) test.equal((await cancel('one')).status, 200);
  test.equal((await auditEntries(sql, at.organizationId)).length, 1);
  const both = await Promise.all([cancel('two'), cancel('two')]);
  test.same(
    both.map(({ status }) => status),
    [200, 200],
  );
  test.equal((await auditEntries(sql, at.organizationId)).length, 2);
  test.equal((await cancel()).status, 200);
  test.equal((await auditEntries(sql, at.organizationId)).length, 3);
});

t.test('what is refused leaves no entry', async (test) => {
  const at = await org();
  const run = await runNew(sql, at);
  test.match(await anna.post(`${at.base}/tasks/${run.taskId}/retry`), { status: 409 });
  test.match(await anna.post(`${at.base}/tasks/${randomUUID()}/cancel`), { status: 404 });
  test.match(await anna.patch(at.base, { status: 'suspended' }), { status: 403 });
  test.match(await anna.patch(at.base, { name: '' }), { status: 400 });
  const eve = app.owner.as(await issuer.token('eve'));
  test.match(await eve.patch(at.base, { name: 'Mine' }), { status: 404 });
  await memberOf(at.organizationId, 'vic', 'viewer');
  const vic = app.owner.as(await issuer.token('vic'));
  test.match(await vic.patch(at.base, { name: 'Mine' }), { status: 403 });
  test.same(await auditEntries(sql, at.organizationId), []);
});

t.test('agents leave none, whatever they call', async (test) => {
  const at = await org();
  const { id } = await createTask(sql, at);
  const agent = `/internal/agent/organizations/${at.organizationId}`;
  expectSuccess(await app.service.post(`${agent}/tasks/${id}/cancel`));
  test.same(await auditEntries(sql, at.organizationId), []);
});

t.test('the entry and the change commit together, or neither does', async (test) => {
  const at = await org();
  await setWorkDispatch(sql.api, at, true);
  // An entry that cannot be written takes the decision back with it.
  await sql.owner.query(
    `alter table app.audit_entries add constraint audit_entries_probe_check check (action <> 'dispatch.resume') not valid`,
  );
  test.teardown(() => sql.owner.query('alter table app.audit_entries drop constraint audit_entries_probe_check'));
  test.match(await anna.patch(`${at.base}/work-dispatch`, { stopped: false }), { status: 500 });
  const { rows } = await sql.owner.query('select stopped from app.dispatch where organization_id = $1 and kind = $2', [
    at.organizationId,
    'task',
  ]);
  test.same(rows, [{ stopped: true }]);
  test.same((await anna.get<AuditEntry[]>(`${at.base}/audit`)).data, []);
});
