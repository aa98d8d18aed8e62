import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  claimTurn,
  completeTurn,
  createChat,
  createChatOrganization,
  exchange,
  putAttachment,
  send,
  startTurn,
  text,
} from '../../support/chat_fixtures.ts';
import { endLease } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const lost = { status: 409, code: 'run_lease_expired', reason: 'lease_lost' };

scenario('the conversation is the latest messages up to the one that is replied to, oldest first', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const attachmentId = randomUUID();
  await putAttachment(sql.api, org, chat.id, { id: attachmentId });
  await exchange(sql, org, chat.id, [text('one')], { parts: [text('1')], attachmentIds: [attachmentId] });
  await exchange(sql, org, chat.id, [text('two')], { parts: [text('2')] });
  await send(sql.api, org, chat.id, { parts: [text('3')] });
  const turn = await startTurn(sql.api, await claimTurn(sql, org));
  const read = (limit: number, bytes: number, organizationId = turn.organizationId) =>
    transition(sql.api, 'run_conversation', {
      organizationId,
      runId: turn.runId,
      leaseToken: turn.leaseToken,
      limit,
      maxBytes: bytes,
    });
  const texts = (read: Record<string, unknown>) =>
    (read['messages'] as { parts: { text: string }[] }[]).map(({ parts }) => parts[0]?.text);
  const all = await read(100, 1_000_000);
  test.same(texts(all), ['1', 'one', '2', 'two', '3']);
  test.match(all, { chat: { id: chat.id }, messageId: turn.messageId, earlier: false });
  const some = await read(2, 1_000_000);
  test.same(texts(some), ['two', '3']);
  test.equal(some['earlier'], true);
  test.same(texts(await read(100, 1)), ['3'], 'the one that is replied to is always there');
  test.match(await refusal(read(1, 1, randomUUID())), lost);

  const attachment = (id: string) =>
    transition(sql.api, 'run_attachment', {
      organizationId: turn.organizationId,
      runId: turn.runId,
      leaseToken: turn.leaseToken,
      attachmentId: id,
    });
  test.match(await attachment(attachmentId), { attachment: { id: attachmentId, file_name: 'notes.txt' } });
  test.match(await refusal(attachment(randomUUID())), { status: 404, code: 'attachment_not_found' });
  await completeTurn(sql.api, turn);
  test.match(await refusal(read(100, 1000)), lost);
  test.match(await refusal(attachment(attachmentId)), lost);
});

scenario('conversation and attachments are for the holder of the turn’s lease, while it lasts', async (test) => {
  const org = await createChatOrganization(sql);
  const [chat, neighbour] = [await createChat(sql, org), await createChat(sql, org)];
  const attachmentId = randomUUID();
  await putAttachment(sql.api, org, chat.id, { id: attachmentId });
  for (const { id } of [chat, neighbour]) await send(sql.api, org, id);
  const turns = [
    await startTurn(sql.api, await claimTurn(sql, org)),
    await startTurn(sql.api, await claimTurn(sql, org)),
  ];
  const [turn, other] = turns[0]?.chatId === chat.id ? turns : turns.toReversed();
  if (!turn || !other) throw new Error('there are two');
  const refusals = (leaseToken: string, runId = turn.runId) => {
    const held = { organizationId: turn.organizationId, runId, leaseToken };
    return Promise.all([
      refusal(transition(sql.api, 'run_attachment', { ...held, attachmentId })),
      refusal(transition(sql.api, 'run_conversation', { ...held, limit: 1, maxBytes: 1_000 })),
    ]);
  };
  const [fence, secret = ''] = turn.leaseToken.split('.');
  const tokens = [other.leaseToken, `${Number(fence) + 1}.${secret}`, `${fence}.${'0'.repeat(secret.length)}`];
  for (const token of tokens) test.match(await refusals(token), [lost, lost], token);
  test.match(await refusals(turn.leaseToken, other.runId), [lost, lost], 'of another turn');
  const held = { organizationId: turn.organizationId, runId: turn.runId, leaseToken: turn.leaseToken };
  test.match(await transition(sql.api, 'run_attachment', { ...held, attachmentId }), {
    attachment: { id: attachmentId },
  });
  await endLease(sql, turn);
  test.match(await refusals(turn.leaseToken), [lost, lost], 'it is over, whoever noticed');
});
