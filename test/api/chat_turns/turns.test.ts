import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Chat } from '../../../api/chats/schema.ts';
import type { Message } from '../../../api/messages/schema.ts';
import { agentPath, expectSuccess, makeTask, ownerPath, PULL, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createSecondProfile } from '../../support/fixtures.ts';
import { until } from '../../support/wait.ts';
import { ask, chatPath, createChat, createChatOrganization, followChat } from '../chats/support.ts';
import { claimTurn, replyWith, runtimeOf, startClaim, startTurn } from './turns.ts';

const app = await startTestApp(t);
const org = await createChatOrganization(app);

const read = async (message: Message) =>
  expectSuccess(await app.owner.get<Message>(ownerPath(org, `/messages/${message.id}`)));

t.test('a turn is pulled, started, written and completed, and those who follow see it', async (t) => {
  const chat = await createChat(app, org, 'Sales');
  const reply = await ask(app, chat, 'How much?');
  const stream = await followChat(app, chat);
  t.teardown(() => stream.stop());
  const item = await claimTurn(app, org);
  t.match(item, {
    kind: 'chat',
    mode: 'execute',
    attempt: 1,
    agentProfile: { kind: 'chat' },
    chat: {
      chatId: chat.id,
      messageId: reply.id,
      title: 'Sales',
      summary: null,
      harnessSessionId: null,
      isOnboardingChat: false,
    },
  });
  t.notOk('task' in item);
  const runId = randomUUID();
  const started = expectSuccess(await startClaim(app, item, runId));
  t.match(started, {
    kind: 'chat_turn',
    organizationId: org.organizationId,
    agentProfileId: org.profileId,
    chatId: chat.id,
    messageId: reply.id,
    runRequestId: item.runRequestId,
    runId,
    attempt: 1,
    heartbeatIntervalMs: 20_000,
  });
  t.same(expectSuccess(await startClaim(app, item, runId)).executionToken, started.executionToken);
  const runtime = runtimeOf(app, { ...started, leaseToken: item.leaseToken });
  expectSuccess(await runtime.post('running', { harness: 'h', model: 'm' }));
  t.same(expectSuccess(await runtime.append(1, 'About ')), { revision: 2, status: 'pending' });
  t.same(expectSuccess(await runtime.append(1, 'About ')), { revision: 2, status: 'pending' }, 'sent again');
  t.same(expectSuccess(await runtime.append(2, 'ten.')), { revision: 3, status: 'pending' });
  t.equal(refusalOf(await runtime.append(2, 'twelve.')), '409 run_lease_expired differs');
  t.match(await read(reply), { revision: 3, status: 'pending', parts: [{ kind: 'text', text: 'About ten.' }] });
  const output = { parts: [{ kind: 'text', text: 'Ten.' }], summary: 'About sales', harnessSessionId: 's-1' };
  t.same(expectSuccess(await runtime.complete(output)), { status: 'succeeded' });
  t.same(expectSuccess(await runtime.complete(output)), { status: 'succeeded' }, 'sent again');
  t.equal(refusalOf(await runtime.complete()), '409 run_lease_expired differs');
  const done = await read(reply);
  t.match(done, { status: 'complete', revision: 4, parts: [{ kind: 'text', text: 'Ten.' }], error: null });
  t.ok(done.completedAt);
  const after = expectSuccess(await app.owner.get<Chat>(chatPath(chat)));
  t.match(after, { summary: 'About sales', harnessSessionId: 's-1' });
  t.ok(after.lastMessageAt > chat.lastMessageAt);
  await until('the end', () => stream.events.at(-1)?.data.message?.status === 'complete');
  t.same(stream.events.at(-1)?.data.message, done);
  t.match(
    expectSuccess(await app.owner.get<unknown[]>(ownerPath(org, '/runs'))),
    { length: 0 },
    'the list has no turns',
  );
});

t.test('a failed turn leaves its error, and the chat takes the next message', async (t) => {
  const chat = await createChat(app, org);
  const reply = await ask(app, chat);
  const runtime = runtimeOf(app, await startTurn(app, org));
  t.same(expectSuccess(await runtime.fail({ retryable: true })), { status: 'failed' });
  t.match(await read(reply), { status: 'failed', error: { code: 'broken', message: 'It broke', retryable: true } });
  t.match(await ask(app, chat), { status: 'pending' });
  await replyWith(app, org, []);
});

t.test('a started turn that is cancelled ends when the runtime yields', async (t) => {
  const chat = await createChat(app, org);
  const reply = await ask(app, chat);
  const runtime = runtimeOf(app, await startTurn(app, org));
  expectSuccess(await runtime.append(1, 'Half'));
  const cancel = chatPath(chat, `/messages/${reply.id}/cancel`);
  t.match(expectSuccess(await app.owner.post<Message>(cancel)), { status: 'cancelling', revision: 3 });
  t.equal(refusalOf(await app.owner.post(cancel)), '409 message_not_cancellable');
  t.same(expectSuccess(await runtime.append(2, ' more')), { revision: 3, status: 'cancelling' });
  t.same(expectSuccess(await runtime.post('heartbeat', {})), { status: 'cancelling' });
  t.equal(refusalOf(await app.owner.delete(chatPath(chat))), '409 chat_response_active');
  t.same(expectSuccess(await runtime.complete({ parts: [] })), { status: 'cancelled' });
  t.match(await read(reply), { status: 'cancelled', parts: [{ text: 'Half' }], revision: 4 });
});

t.test('calls of a runtime that do not fit are refused, and the lease stays', async (t) => {
  await ask(app, await createChat(app, org));
  const turn = await startTurn(app, org);
  const runtime = runtimeOf(app, turn);
  const bad: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
    ['neither', { baseRevision: 1 }],
    ['both', { baseRevision: 1, parts: [], append: 'x' }],
    ['nothing to append', { baseRevision: 1, append: '' }],
    ['no base', { append: 'x' }],
    ['a part of users', { baseRevision: 1, parts: [{ kind: 'answer', messageId: randomUUID(), partId: 'a' }] }],
    ['an unknown field', { baseRevision: 1, parts: [{ kind: 'text', text: 'x', size: 1 }] }],
    ['an id twice', { baseRevision: 1, parts: ['a', 'a'].map((id) => ({ id, kind: 'text', text: 'x' })) }],
  ];
  for (const [name, fields] of bad) t.equal((await runtime.post('message', fields)).status, 400, name);
  const result = { kind: 'completed', summary: 'x', artifacts: [] };
  t.equal((await runtime.post('complete', { output: { kind: 'task_result', result } })).status, 400);
  const lost = { ...turn, leaseToken: `9.${turn.leaseToken.split('.')[1]}` };
  t.equal(refusalOf(await runtimeOf(app, lost).append(1, 'x')), '409 run_lease_expired lease_lost');
  const foreign = { ...turn, organizationId: (await createChatOrganization(app)).organizationId };
  t.equal(refusalOf(await runtimeOf(app, foreign).append(1, 'x')), '409 run_lease_expired lease_lost');
  expectSuccess(await runtime.append(1, 'x'));
  expectSuccess(await runtime.complete());
});

t.test('the token of a turn is bound to it, and ends with it', async (t) => {
  await ask(app, await createChat(app, org));
  const turn = await startTurn(app, org);
  const agent = app.owner.as(turn.executionToken);
  t.equal((await agent.get(agentPath(org, '/status'))).status, 200);
  t.equal((await agent.get(ownerPath(org, '/chats'))).status, 200, 'open mode asks for no token');
  t.equal(refusalOf(await agent.post(PULL, { workerId: 'w' })), '401 agent_unauthorized');
  expectSuccess(await runtimeOf(app, turn).complete());
  t.equal(refusalOf(await agent.get(agentPath(org, '/status'))), '401 agent_unauthorized');
});

t.test('tasks and chat turns are pulled side by side, each with what it is', async (t) => {
  const tasks = await createSecondProfile(sqlOf(app), org);
  await makeTask(app, tasks);
  await ask(app, await createChat(app, org));
  const pulled = await app.service.post<{ items: { kind: string }[] }>(PULL, {
    workerId: 'w',
    limit: 5,
    organizationIds: [org.organizationId],
  });
  t.same(
    expectSuccess(pulled)
      .items.map((item) => item.kind)
      .sort(),
    ['chat', 'task'],
  );
});

t.test('a turn is given no input files, and its holder alone is told so', async (t) => {
  await ask(app, await createChat(app, org));
  const turn = await startTurn(app, org);
  const path = `/internal/runs/${turn.runId}/inputs`;
  const headers = { 'x-organization-id': turn.organizationId, 'x-lease-token': turn.leaseToken };
  t.same(expectSuccess(await app.service.get(path, { headers })), { version: 1, files: [] });
  const content = await app.service.get(`${path}/content`, { headers, query: { path: 'a.txt' } });
  t.match(content, { status: 400, code: 'validation_failed' });
  expectSuccess(await runtimeOf(app, turn).complete({ parts: [{ kind: 'text', text: 'Done' }] }));
  t.equal(refusalOf(await app.service.get(path, { headers })), '409 run_lease_expired lease_lost');
});
