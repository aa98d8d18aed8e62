import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  chatRow,
  claimTurn,
  completeTurn,
  createChat,
  createChatOrganization,
  messageRow,
  pullTurns,
  send,
  startedTurn,
  startTurn,
  text,
  write,
} from '../../support/chat_fixtures.ts';
import {
  appendLogs,
  capability,
  checkLease,
  createOrganization,
  createTask,
  failRun,
  heartbeat,
  logEntry,
  markRunning,
  releaseClaim,
  runNext,
  taskCreate,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const lost = { status: 409, code: 'run_lease_expired', reason: 'lease_lost' };
const differs = { status: 409, code: 'run_lease_expired', reason: 'differs' };

scenario('a turn is pulled with its chat, started, written and completed', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org, { title: 'Numbers' });
  const { assistantMessage } = await send(sql.api, org, chat.id);
  const claim = await claimTurn(sql, org);
  test.match(claim, { kind: 'chat', mode: 'execute', attempt: 1, task: null, agentProfile: { id: org.profileId } });
  test.match(claim.chat, { id: chat.id, message_id: assistantMessage.id, title: 'Numbers', summary: null });

  const turn = await startTurn(sql.api, claim);
  test.match(turn, { chatId: chat.id, messageId: assistantMessage.id, agentProfileId: org.profileId, attempt: 1 });
  test.same(await startTurn(sql.api, claim, turn.runId), turn, 'a start sent again returns the same');
  test.match(await refusal(startTurn(sql.api, claim)), differs);
  test.same(await markRunning(sql.api, turn), { status: 'running' });
  test.same(await heartbeat(sql.api, turn), { status: 'running' });
  await appendLogs(sql.api, turn, [logEntry(1)]);

  test.match(await write(sql.api, turn, 1, { append: 'One' }), { revision: 2, status: 'pending', chatId: chat.id });
  test.match(await write(sql.api, turn, 2, { append: ', two' }), { revision: 3 });
  const written = await messageRow(sql, org, assistantMessage.id);
  test.match(written, { status: 'pending', parts: [{ kind: 'text', text: 'One, two' }] });

  const output = { parts: [text('One, two, three')], summary: 'Counting', harnessSessionId: 's-1' };
  const done = await completeTurn(sql.api, turn, output);
  test.match(done, { status: 'succeeded', chatId: chat.id, messageId: assistantMessage.id, revision: 4 });
  const message = await messageRow(sql, org, assistantMessage.id);
  test.match(message, { status: 'complete', revision: 4, parts: [{ text: 'One, two, three' }], error: null });
  test.equal(message.parts[0]?.id, written.parts[0]?.id, 'the part kept its id');
  const after = await chatRow(sql, org, chat.id);
  test.match(after, { summary: 'Counting', harness_session_id: 's-1' });
  test.ok((after?.last_message_at ?? '') > chat.last_message_at);
  test.same(await completeTurn(sql.api, turn, output), { status: 'succeeded' }, 'a repeat changes nothing');
  test.match(await refusal(completeTurn(sql.api, turn, output, 'b')), differs);
  test.match(await refusal(write(sql.api, turn, 4, { append: '!' })), lost);
  test.equal((await messageRow(sql, org, assistantMessage.id)).revision, 4);
});

scenario('chat turns go on while work dispatch is stopped, and beside tasks at their capacity', async (test) => {
  const org = await createChatOrganization(sql, { limits: { maxConcurrentRuns: 1 }, maxConcurrentRuns: 1 });
  await createTask(sql, org);
  await runNext(sql, org);
  const stop = { organizationId: org.organizationId, stopped: true, actor: { kind: 'owner' } };
  await transition(sql.api, 'work_dispatch_set', stop);
  const turn = await startedTurn(sql, org);
  test.match(await completeTurn(sql.api, turn), { status: 'succeeded' });
});

scenario('a claim that reached nobody is given back', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  await send(sql.api, org, chat.id);
  test.same(await releaseClaim(sql.api, await claimTurn(sql, org)), { released: true });
  await startTurn(sql.api, await claimTurn(sql, org));
});

scenario('the capability of a turn is bound to it, and ends with it', async (test) => {
  const org = await createChatOrganization(sql);
  const turn = await startedTurn(sql, org);
  const check = (organizationId: string) =>
    transition(sql.api, 'capability_check', {
      organizationId,
      tokenHash: capability(turn.executionToken).tokenHash,
    });
  test.match(await check(org.organizationId), {
    actor: { profileKind: 'chat', runId: turn.runId, chatId: turn.chatId, messageId: turn.messageId, taskId: null },
  });
  test.match(await refusal(check(await createOrganization(sql))), { status: 401 });
  await taskCreate(sql.api, org, { title: 'From the chat' }, capability(turn.executionToken));
  await completeTurn(sql.api, turn);
  test.match(await refusal(check(org.organizationId)), { status: 401, code: 'agent_unauthorized' });
  const late = taskCreate(sql.api, org, { title: 'Late' }, capability(turn.executionToken));
  test.match(await refusal(late), { status: 401 });
});

scenario('calls of another organization, another run or another token change nothing', async (test) => {
  const org = await createChatOrganization(sql);
  const other = await createChatOrganization(sql);
  const turn = await startedTurn(sql, org);
  const strangers = [
    { ...turn, organizationId: other.organizationId },
    { ...turn, runId: randomUUID() },
    { ...turn, leaseToken: `1.${'0'.repeat(64)}` },
    { ...turn, leaseToken: (await startedTurn(sql, org)).leaseToken },
  ];
  for (const stranger of strangers) {
    test.match(await refusal(write(sql.api, stranger, 1, { append: 'x' })), lost);
    test.match(await refusal(completeTurn(sql.api, stranger)), lost);
    test.match(await refusal(failRun(sql.api, stranger)), lost);
    test.match(await refusal(checkLease(sql.api, stranger)), lost);
  }
  await createTask(sql, org);
  const run = await runNext(sql, org);
  test.match(await refusal(write(sql.api, run, 1, { append: 'x' })), lost, 'a task’s run has no message');
  test.match(await messageRow(sql, org, turn.messageId), { status: 'pending', revision: 1 });
});

scenario('one runtime claims a turn once', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  await send(sql.api, org, chat.id);
  const pulls = await Promise.all([1, 2, 3].map(() => pullTurns(sql.api, org)));
  test.equal(pulls.flat().length, 1);
});
