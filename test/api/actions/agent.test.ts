import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Action } from '../../../api/actions/schema.ts';
import {
  createActing,
  createProposer,
  createSibling,
  grantGateway,
  type Proposer,
  propose,
  reject,
} from '../../support/action_fixtures.ts';
import { agentPath, expectSuccess, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createChatOrganization, startedTurn } from '../../support/chat_fixtures.ts';
import { completeRun, type TestOrganization } from '../../support/fixtures.ts';
import type { Client } from '../../support/http.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);

type At = Pick<TestOrganization, 'organizationId'>;
const list = (at: At, client: Client, query: Record<string, string | number> = {}) =>
  client.get<Action[]>(agentPath(at, '/actions'), { query });
const get = (at: At, client: Client, id: string) => client.get<Action>(agentPath(at, `/actions/${id}`));
const idsOf = async (at: At, client: Client, query: Record<string, string | number> = {}) =>
  expectSuccess(await list(at, client, query)).map(({ id }) => id);
const made = async (by: Proposer, amount: number) => (await propose(sql, by, { arguments: { amount } })).id;

t.test('a run reads the actions of its task, with what became of them, and no others', async (t) => {
  const by = await createProposer(sql);
  const other = await createSibling(sql, by);
  const { org } = by;
  const agent = app.owner.as(by.run.executionToken);
  const first = await made(by, 1);
  const second = await made(by, 2);
  const foreign = await made(other, 1);
  await reject(sql.api, org, first, { reason: 'Not this one' });
  t.same(await idsOf(org, agent), [second, first]);
  t.same(await idsOf(org, agent, { status: 'rejected' }), [first]);
  t.same(await idsOf(org, agent, { limit: 1 }), [second]);
  t.match(expectSuccess(await get(org, agent, first)), {
    id: first,
    taskId: by.run.taskId,
    status: 'rejected',
    decision: { outcome: 'rejected', note: 'Not this one' },
  });
  t.same(await idsOf(org, agent, { taskId: other.run.taskId }), [], 'of another task');
  t.same(await idsOf(org, agent, { runId: other.run.runId }), []);
  for (const id of [foreign, randomUUID()]) t.match(refusalOf(await get(org, agent, id)), /^404 not_found/);
  t.same(await idsOf(org, app.service), [foreign, second, first], 'the service token reads all');
  expectSuccess(await get(org, app.service, foreign));
  await completeRun(sql.api, by.run);
  for (const reply of [await list(org, agent), await get(org, agent, first)]) {
    t.equal(refusalOf(reply), '401 agent_unauthorized', 'its capability ends with its run');
  }
});

t.test('a page of one caller is no page of another', async (t) => {
  const by = await createProposer(sql);
  await made(by, 1);
  await made(by, 2);
  const { body } = await list(by.org, app.owner.as(by.run.executionToken), { limit: 1 });
  const cursor = body.pagination?.nextCursor ?? '';
  t.equal(refusalOf(await list(by.org, app.service, { limit: 1, cursor })), '400 validation_failed invalid_cursor');
});

t.test('a reply reads the actions of its chat', async (t) => {
  const org = await createChatOrganization(sql);
  const { integration } = await createActing(sql, undefined, org);
  const turn = await startedTurn(sql, org);
  const mine = await made(await grantGateway(sql, org, integration, turn), 1);
  const agent = app.owner.as(turn.executionToken);
  t.same(await idsOf(org, agent), [mine]);
  t.match(expectSuccess(await get(org, agent, mine)), { taskId: null, chatId: turn.chatId, messageId: turn.messageId });
  const next = await startedTurn(sql, org);
  t.same(await idsOf(org, app.owner.as(next.executionToken)), [], 'another chat');
  t.match(refusalOf(await get(org, app.owner.as(next.executionToken), mine)), /^404 not_found/);
});

t.test('another organization’s are not there, whoever asks', async (t) => {
  const by = await createProposer(sql);
  const elsewhere = await createProposer(sql);
  const id = await made(by, 1);
  const agent = app.owner.as(elsewhere.run.executionToken);
  for (const reply of [await list(by.org, agent), await get(by.org, agent, id)]) {
    t.equal(refusalOf(reply), '401 agent_unauthorized');
  }
  t.match(refusalOf(await get(elsewhere.org, agent, id)), /^404 not_found/);
  t.match(refusalOf(await get(elsewhere.org, app.service, id)), /^404 not_found/);
});
