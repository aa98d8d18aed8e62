import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Action } from '../../../api/actions/schema.ts';
import { HIDDEN } from '../../../engine/secret_values.ts';
import {
  actionFile,
  approve,
  createEngineering,
  createProposer,
  createSibling,
  grantGateway,
  itemsOf,
  makeOverdue,
  makeUnknown,
  type Proposer,
  propose,
  reject,
  renewed,
} from '../../support/action_fixtures.ts';
import { expectSuccess, type Fields, ownerPath, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { auditEntries } from '../../support/audit_fixtures.ts';
import { completeRun, sha256, type TestOrganization } from '../../support/fixtures.ts';
import { createClient, issuePaths } from '../../support/http.ts';
import { brokenInvariants } from '../../support/invariants.ts';
import { startIssuer } from '../../support/jwt.ts';
import { transition } from '../../support/transitions.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);

type At = Pick<TestOrganization, 'organizationId'>;
const at = (where: At, rest = '') => ownerPath(where, `/actions${rest}`);
const list = (where: At, query: Record<string, string | number> = {}, client = app.owner) =>
  client.get<Action[]>(at(where), { query });
const idsOf = async (where: At, query: Record<string, string | number> = {}) => {
  const reply = await list(where, query);
  return expectSuccess(reply).map(({ id }) => id);
};

/** Each call about one action. */
const calls = (where: At, id: string, client = app.owner) => ({
  get: () => client.get<Action>(at(where, `/${id}`)),
  approve: (body: Fields = {}) => client.post<Action>(at(where, `/${id}/approve`), body),
  reject: (body: Fields = { reason: 'No' }) => client.post<Action>(at(where, `/${id}/reject`), body),
  reconcile: (body: Fields = { outcome: 'succeeded', note: 'I have looked' }) =>
    client.post<Action>(at(where, `/${id}/reconcile`), body),
});

async function waiting() {
  const by = await createProposer(sql);
  const { id } = await propose(sql, by);
  return { by, org: by.org, id, ...calls(by.org, id) };
}

t.test('items of actions are listed and counted, and decided at the action alone', async (t) => {
  const { by, org, id, approve } = await waiting();
  const unknown = await makeUnknown(sql, by, { arguments: { amount: 2 } });
  const inbox = (rest = '') => ownerPath(org, `/human-inbox${rest}`);
  const summary = async () => expectSuccess(await app.owner.get<Fields>(ownerPath(org, '/inbox/summary')));
  const counted = { questions: 0, notifications: 0, approvals: 1, reconciliation: 1, total: 2 };
  t.same(await summary(), counted);
  for (const [kind, actionId] of [
    ['approval', id],
    ['reconciliation', unknown.id],
  ] as const) {
    const items = expectSuccess(await app.owner.get<{ id: string }[]>(inbox(), { query: { kind } }));
    t.match(items, [{ kind, actionId, status: 'open' }]);
    t.equal(items.length, 1);
    const itemId = items[0]?.id;
    const response = await app.owner.post(inbox(`/${itemId}/respond`), { response: 'yes' });
    t.equal(refusalOf(response), '400 validation_failed not_a_question');
    t.equal(
      refusalOf(await app.owner.post(inbox(`/${itemId}/acknowledge`))),
      '400 validation_failed not_a_notification',
    );
    t.match(expectSuccess(await app.owner.get(inbox(`/${itemId}`))), { status: 'open' });
  }
  t.same(await summary(), counted);
  t.match(expectSuccess(await calls(org, id).get()), { status: 'awaiting_approval', decision: null });
  expectSuccess(await approve());
  t.same(await summary(), { ...counted, approvals: 0, total: 1 });
  expectSuccess(await calls(org, unknown.id).reconcile());
  t.same(await summary(), { ...counted, approvals: 0, reconciliation: 0, total: 0 });
});

t.test('an action is read as it was proposed, and approved by what was seen of it', async (t) => {
  const by = await createProposer(sql);
  const { id } = await propose(sql, by, {
    arguments: { amount: 7, to: ['a', 'b'] },
    files: [actionFile('body', 'text')],
  });
  const { get, approve: approveIt } = calls(by.org, id);
  const action = expectSuccess(await get());
  t.match(action, {
    id,
    organizationId: by.org.organizationId,
    integrationId: by.integration.id,
    integrationKey: by.integration.key,
    agentProfileId: by.org.profileId,
    taskId: by.run.taskId,
    runId: by.run.runId,
    chatId: null,
    messageId: null,
    retryOf: null,
    kind: 'provider_write',
    tool: 'items.create',
    risk: 'external',
    arguments: { amount: 7, to: ['a', 'b'] },
    files: [{ argument: 'body', name: 'body.txt', contentType: 'text/plain', sizeBytes: 4, sha256: sha256('text') }],
    status: 'awaiting_approval',
    version: 1,
    requiresApproval: true,
    decision: null,
    execution: null,
    reconciliation: null,
    reason: null,
  });
  t.notMatch(JSON.stringify(action), /storage|digest|lease|subject/i);
  const { argumentsSha256 } = action;
  const seen = { expectedVersion: 1, argumentsSha256 };
  t.equal(refusalOf(await approveIt({ expectedVersion: 2 })), '409 state_conflict stale');
  t.equal(refusalOf(await approveIt({ argumentsSha256: sha256('other') })), '409 state_conflict differs');
  t.same(expectSuccess(await get()), action, 'which changes nothing');
  const approved = expectSuccess(await approveIt({ ...seen, note: ' Go on ' }));
  t.match(approved, {
    status: 'approved',
    version: 2,
    decision: { outcome: 'approved', by: 'open', note: 'Go on' },
    arguments: action.arguments,
    files: action.files,
  });
  t.same(expectSuccess(await get()), approved);
  t.same(expectSuccess(await approveIt(seen)), approved, 'the same decision again');
  t.match(await itemsOf(sql, id), [{ kind: 'approval', status: 'resolved' }]);
  t.equal(refusalOf(await calls(by.org, id).reject()), '409 state_conflict decided');
  t.match(await auditEntries(sql, by.org.organizationId), [
    { action: 'action.approve', subject_id: id, outcome: 'done', result: { version: 1, argumentsSha256 } },
    { action: 'action.approve', subject_id: id, outcome: 'done', result: { version: 2, argumentsSha256 } },
  ]);
});

t.test('a rejected action has the reason, and stays rejected', async (t) => {
  const { id, org, ...one } = await waiting();
  const rejected = expectSuccess(await one.reject({ reason: 'Too much' }));
  t.match(rejected, { id, status: 'rejected', decision: { outcome: 'rejected', by: 'open', note: 'Too much' } });
  t.same(expectSuccess(await one.reject({ reason: 'Far too much' })), rejected);
  t.equal(refusalOf(await one.approve()), '409 state_conflict decided');
  t.equal(refusalOf(await one.reconcile()), '409 state_conflict decided');
});

for (const outcome of ['succeeded', 'failed', 'not_executed']) {
  t.test(`an unknown outcome is reconciled to ${outcome}`, async (t) => {
    const by = await createProposer(sql);
    const { id } = await makeUnknown(sql, by);
    const { get, reconcile, reject: rejectIt } = calls(by.org, id);
    t.match(expectSuccess(await get()), {
      status: 'unknown',
      decision: { outcome: 'approved' },
      execution: { attempts: 1, startedAt: String, finishedAt: String, result: null, error: null },
      reconciliation: null,
    });
    t.equal(refusalOf(await rejectIt()), '409 state_conflict decided');
    const reconciled = expectSuccess(await reconcile({ outcome, note: 'The shop says so' }));
    t.match(reconciled, { status: outcome, reconciliation: { outcome, note: 'The shop says so', by: 'open' } });
    t.same(expectSuccess(await reconcile({ outcome, note: 'Again' })), reconciled);
    const other = outcome === 'failed' ? 'succeeded' : 'failed';
    t.equal(refusalOf(await reconcile({ outcome: other, note: 'No' })), '409 state_conflict decided');
  });
}

t.test('a run that waits for an action is read with it, and so is its task', async (t) => {
  const by = await createProposer(sql);
  const { id } = await propose(sql, by);
  await completeRun(sql.api, by.run, { result: { kind: 'waiting', reason: 'It has to be done', actionIds: [id] } });
  const runs = await app.owner.get(ownerPath(by.org, `/runs/${by.run.runId}`));
  t.match(expectSuccess(runs), { output: { result: { kind: 'waiting', actionIds: [id] } } });
  const task = await app.owner.get(ownerPath(by.org, `/tasks/${by.run.taskId}`));
  t.match(expectSuccess(task), { status: 'blocked', state: { blockers: [{ kind: 'action', actionId: id }] } });
});

t.test('nobody decides about an action whose time is over', async (t) => {
  for (const verb of ['approve', 'reject'] as const) {
    const { id, org, ...one } = await waiting();
    await makeOverdue(sql, id);
    for (const name of ['first', 'repeat']) t.equal(refusalOf(await one[verb]()), '409 state_conflict expired', name);
    t.match(expectSuccess(await one.get()), { status: 'expired', reason: { code: 'not_decided' }, decision: null });
    t.match(await auditEntries(sql, org.organizationId), [
      {
        action: `action.${verb}`,
        outcome: 'refused',
        code: 'state_conflict',
        result: { version: 1, argumentsSha256: String },
      },
    ]);
  }
});

t.test('of two decisions at once one counts', async (t) => {
  const one = await waiting();
  const same = await Promise.all([one.approve(), one.approve(), one.approve()]);
  t.same(
    same.map(({ status }) => status),
    [200, 200, 200],
  );
  t.match(expectSuccess(await one.get()), { version: 2 });
  const other = await waiting();
  const both = await Promise.all([other.approve(), other.reject()]);
  t.same(both.map(({ status }) => status).sort(), [200, 409]);
  const outcome = both[0].status === 200 ? 'approved' : 'rejected';
  t.match(expectSuccess(await other.get()), { status: outcome, version: 2, decision: { outcome } });
});

t.test('what is no decision is 400, and says where', async (t) => {
  const { approve: approveIt, reject: rejectIt, reconcile } = await waiting();
  const long = 'x'.repeat(2_001);
  for (const [reply, path] of [
    [await approveIt({ expectedVersion: 0 }), 'expectedVersion'],
    [await approveIt({ argumentsSha256: 'AB' }), 'argumentsSha256'],
    [await approveIt({ note: ' ' }), 'note'],
    [await approveIt({ note: long }), 'note'],
    [await approveIt({ reason: 'x' }), 'reason'],
    [await rejectIt({}), 'reason'],
    [await rejectIt({ reason: long }), 'reason'],
    [await reconcile({ outcome: 'unknown', note: 'x' }), 'outcome'],
    [await reconcile({ outcome: 'failed' }), 'note'],
    [await reconcile({ outcome: 'failed', note: long }), 'note'],
  ] as const) {
    t.match(refusalOf(reply), /^400 validation_failed/);
    t.same(issuePaths(reply), [path]);
  }
});

t.test('an action of another organization, or of none, is not there', async (t) => {
  const { org, id } = await waiting();
  const { org: elsewhere } = await waiting();
  for (const [where, which, code] of [
    [elsewhere, id, 'action_not_found'],
    [org, randomUUID(), 'action_not_found'],
    [{ organizationId: randomUUID() }, id, 'organization_not_found'],
  ] as const) {
    for (const [name, call] of Object.entries(calls(where, which)))
      t.equal(refusalOf(await call()), `404 ${code}`, name);
  }
  t.equal(refusalOf(await list({ organizationId: randomUUID() })), '404 organization_not_found');
  t.match(expectSuccess(await calls(org, id).get()), { status: 'awaiting_approval', version: 1 });
});

t.test('viewers read, and owners alone decide: by their names', async (t) => {
  const issuer = await startIssuer(t);
  const members = await startTestApp(t, { database: app.database, config: { ownerAuth: issuer.ownerAuth } });
  const { org, id } = await waiting();
  const { organizationId } = org;
  await transition(sql.api, 'organization_member_put', { organizationId, subject: 'vic', role: 'viewer' });
  await transition(sql.api, 'organization_member_put', { organizationId, subject: 'anna', role: 'owner' });
  const vic = members.owner.as(await issuer.token('vic'));
  t.equal(expectSuccess(await list(org, {}, vic)).length, 1);
  const { get, ...decisions } = calls(org, id, vic);
  expectSuccess(await get());
  for (const [name, call] of Object.entries(decisions)) t.equal(refusalOf(await call()), '403 forbidden', name);
  const eve = members.owner.as(await issuer.token('eve'));
  for (const [name, call] of Object.entries(calls(org, id, eve))) {
    t.equal(refusalOf(await call()), '404 organization_not_found', name);
  }
  const anna = calls(org, id, members.owner.as(await issuer.token('anna')));
  t.match(expectSuccess(await anna.approve()), { decision: { by: 'anna' } });
});

t.test('neither who reaches the port in open mode, nor an agent, nor the service decides', async (t) => {
  const { by, org, id } = await waiting();
  const anybody = createClient(app.url);
  expectSuccess(await calls(org, id, anybody).get());
  for (const client of [anybody, app.service, app.owner.as(by.run.executionToken)]) {
    const { get: _get, ...decisions } = calls(org, id, client);
    for (const [name, call] of Object.entries(decisions)) t.match(refusalOf(await call()), /^401 /, name);
  }
  t.match(expectSuccess(await calls(org, id).get()), { status: 'awaiting_approval', version: 1 });
});

/** Five actions of two tasks: one of each fate. */
async function several() {
  const by = await createProposer(sql, undefined, await createEngineering(sql));
  const other = await createSibling(sql, by);
  const made = async (from: Proposer, amount: number) => (await propose(sql, from, { arguments: { amount } })).id;
  const open = await made(by, 1);
  const approved = await made(by, 2);
  await approve(sql.api, by.org, approved);
  const rejected = await made(other, 3);
  await reject(sql.api, by.org, rejected);
  const { id: unknown } = await makeUnknown(sql, other, { arguments: { amount: 4 } });
  const { id: pushed } = await propose(sql, await gitOf(by), { gateway: 'git', tool: 'git.push', risk: 'high' });
  return { by, other, org: by.org, open, approved, rejected, unknown, pushed };
}

async function gitOf(by: Proposer): Promise<Proposer> {
  return { ...by, token: (await grantGateway(sql, by.org, by.integration, by.run, 'git')).token };
}

t.test('lists are newest first, page by page, and filtered', async (t) => {
  const { by, other, org, open, approved, rejected, unknown, pushed } = await several();
  const all = [pushed, unknown, rejected, approved, open];
  t.same(await idsOf(org), all);
  const first = await list(org, { limit: 2 });
  t.same(
    first.data.map(({ id }) => id),
    all.slice(0, 2),
  );
  const cursor = first.body.pagination?.nextCursor ?? '';
  t.same(await idsOf(org, { limit: 2, cursor }), all.slice(2, 4));
  t.equal(refusalOf(await list(org, { limit: 2, cursor, kind: 'git_push' })), '400 validation_failed invalid_cursor');
  for (const [query, expected] of [
    [{ status: 'awaiting_approval' }, [pushed, open]],
    [{ status: 'unknown' }, [unknown]],
    [{ integrationId: by.integration.id }, all],
    [{ integrationId: randomUUID() }, []],
    [{ taskId: by.run.taskId }, [pushed, approved, open]],
    [{ runId: other.run.runId }, [unknown, rejected]],
    [{ agentProfileId: org.profileId }, all],
    [{ agentProfileId: randomUUID() }, []],
    [{ kind: 'git_push' }, [pushed]],
    [{ risk: 'external' }, [unknown, rejected, approved, open]],
    [{ decided: 'true' }, [unknown, rejected, approved]],
    [{ decided: 'false' }, [pushed, open]],
    [{ decided: 'false', kind: 'provider_write', taskId: by.run.taskId }, [open]],
  ] as const) {
    t.same(await idsOf(org, query as Record<string, string>), expected, JSON.stringify(query));
  }
  for (const query of [
    { status: 'open' },
    { kind: 'x' },
    { risk: 'x' },
    { decided: 'yes' },
    { taskId: 'T-1' },
    { tool: 'x' },
  ]) {
    t.match(
      refusalOf(await list(org, query as Record<string, string>)),
      /^400 validation_failed/,
      JSON.stringify(query),
    );
  }
});

t.test('secret arguments are never shown, also when the tool is another one by then', async (t) => {
  const by = await createProposer(sql);
  const schema = { type: 'object', properties: { apiKey: { type: 'string', writeOnly: true } } };
  const set = (value: object) =>
    sql.owner.query(`update app.integration_tools set input_schema = $2 where integration_id = $1`, [
      by.integration.id,
      value,
    ]);
  await set(schema);
  const { id } = await propose(sql, await renewed(sql, by), {
    summary: 'Send it',
    arguments: { apiKey: 'hush-hush', amount: 1 },
  });
  await set({ type: 'object' });
  const { get, approve: approveIt } = calls(by.org, id);
  for (const reply of [await get(), await approveIt(), await list(by.org)]) {
    t.notMatch(JSON.stringify(reply.body), /hush-hush|writeOnly/);
  }
  t.same(expectSuccess(await get()).arguments, { apiKey: HIDDEN, amount: 1 });
  t.notMatch(JSON.stringify(await auditEntries(sql, by.org.organizationId)), /hush-hush/);
});

t.test('no decision breaks an invariant', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
