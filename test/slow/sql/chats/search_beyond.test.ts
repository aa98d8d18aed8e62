import t from 'tap';
import {
  claimTurn,
  completeTurn,
  createChat,
  createChatOrganization,
  fillChunks,
  indexChunks,
  messageRow,
  send,
  startTurn,
  text,
  waitingChunks,
} from '../../../support/chat_fixtures.ts';
import { foundTitles } from '../../../support/chat_search.ts';
import { deleteOrganization, type TestOrganization } from '../../../support/fixtures.ts';
import { scenarios } from '../../../support/invariants.ts';
import { openSession, openSql, transition } from '../../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);
const found = (org: TestOrganization, words: string) => foundTitles(sql, org, words);

/** A chat, titled so, with one message. */
async function say(org: TestOrganization, title: string, ...texts: readonly string[]) {
  const { id } = await createChat(sql, org, { title });
  const { userMessage } = await send(sql.api, org, id, { parts: texts.map((one) => text(one)) });
  return { chatId: id, messageId: userMessage.id };
}

async function chunks(org: TestOrganization, messageId: string) {
  const { rows } = await sql.owner.query<{ number: number; length: number | null; search_text: string | null }>(
    `select number, length(search_text) as length, search_text from app.message_chunks
     where organization_id = $1 and message_id = $2 order by number`,
    [org.organizationId, messageId],
  );
  return rows;
}

/** Words that are nowhere else, from a place on, in a text of dots. */
function textWith(length: number, places: Readonly<Record<string, number>>): string {
  const characters = Array.from({ length }, () => '.');
  for (const [word, place] of Object.entries(places)) {
    for (const [index, letter] of Array.from(word).entries()) characters[place + index] = letter;
  }
  return characters.join('');
}

scenario('what lies beyond the beginning is found once the job has indexed it, and all is kept', async (test) => {
  const org = await createChatOrganization(sql);
  // With the line break between the parts, "thenwo" is cut at the end of the beginning.
  const texts = ['needle in front'.padEnd(19_999, '.'), `${'.'.repeat(9_990)}thenwo\u4e2dXcutoff`];
  const { messageId } = await say(org, 'long', ...texts);
  test.same(await found(org, 'needle'), ['long']);
  test.same(await found(org, 'thenwo\u4e2d'), ['long']);
  test.same(await found(org, 'cutoff'), []);
  test.same(await waitingChunks(sql, org), [messageId]);
  test.match(await fillChunks(sql.jobs, org, messageId), { filled: 1, waiting: false });
  test.same(await found(org, 'cutoff'), ['long']);
  test.same(await found(org, 'thenwo\u4e2dXCutOff'), ['long'], 'over the end of the beginning');
  test.match(await messageRow(sql, org, messageId), { parts: texts.map((one) => text(one)) });
  test.same(await waitingChunks(sql, org), []);
  test.match(await fillChunks(sql.jobs, org, messageId), { filled: 0, waiting: false }, 'a repeat changes nothing');
  test.equal((await chunks(org, messageId)).length, 1);
});

scenario('every place of a message of a megabyte is found, over the borders of pieces too', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org, { title: 'huge' });
  await send(sql.api, org, chat.id);
  const places: Record<string, number> = {};
  const length = 1_000_000;
  for (let place = 30_500, n = 0; place < length - 200; place += 12_000, n += 1) places[`w${n}ort`] = place;
  // Around each border, and as long as a search may be.
  for (let piece = 1; piece < 38; piece += 1) places[`${'x'.repeat(190)}${piece}y`] = piece * 26_000 + 4_000 - 100;
  places['the very end'] = length - 12;
  const parts = [text(textWith(length, places))];
  await completeTurn(sql.api, await startTurn(sql.api, await claimTurn(sql, org)), { parts });
  test.same(await found(org, 'the very end'), []);
  await indexChunks(sql, org);
  for (const word of Object.keys(places)) test.same(await found(org, word), ['huge'], word.slice(-12));
  test.same(await found(org, `${'x'.repeat(191)}1y`), []);
});

scenario('texts that folding makes longer or shorter are found as a whole', async (test) => {
  const org = await createChatOrganization(sql);
  // One character that folds to eighteen: the beginning ends early.
  const longer = await say(org, 'longer', `${'\ufdfa'.repeat(3_000)} first ${'\ufdfa'.repeat(28_000)} second`);
  const few = await say(org, 'few', `${'\ufdfa'.repeat(1_700)}third`);
  // Three characters that fold to one.
  const syllable = '\ud4db'.normalize('NFD');
  const shorter = await say(org, 'shorter', `${syllable.repeat(12_000)}fourth ${syllable.repeat(12_000)}fifth`);
  const { rows } = await sql.owner.query('select max(length(search_text)) as longest from app.messages');
  test.same(rows, [{ longest: 30_000 }]);
  await indexChunks(sql, org);
  for (const [word, title] of Object.entries({
    first: 'longer',
    second: 'longer',
    third: 'few',
    '\ufdfathird': 'few',
    fourth: 'shorter',
    fifth: 'shorter',
    '\ud4dbfifth': 'shorter',
  })) {
    test.same(await found(org, word), [title], word);
  }
  for (const { messageId } of [longer, few, shorter]) test.ok((await chunks(org, messageId)).length > 0);
});

scenario('a message that its beginning holds as a whole has no pieces', async (test) => {
  const org = await createChatOrganization(sql);
  const exact = await say(org, 'exact', `${'.'.repeat(29_995)}whole`);
  const short = await say(org, 'short', 'whole');
  test.same(await chunks(org, short.messageId), []);
  test.same(await waitingChunks(sql, org), [exact.messageId]);
  test.match(await fillChunks(sql.jobs, org, exact.messageId), { filled: 0, waiting: false });
  test.same(await chunks(org, exact.messageId), []);
  test.same(await found(org, 'whole'), ['short', 'exact']);
});

scenario('the job goes on where it was cut off, and makes the same pieces', async (test) => {
  const org = await createChatOrganization(sql);
  const words = textWith(99_999, { start: 40_000, middle: 70_000, finish: 99_000 });
  const [once, cut] = [await say(org, 'once', words), await say(org, 'cut', words)];
  test.match(await fillChunks(sql.jobs, org, once.messageId, 100), { filled: 3, waiting: false });
  test.match(await fillChunks(sql.jobs, org, cut.messageId, 1), { filled: 1, waiting: true });
  const session = await openSession(test, sql, 'runner_jobs');
  await session.begin();
  await fillChunks(session, org, cut.messageId, 1);
  await session.rollback();
  test.same(await found(org, 'start'), ['cut', 'once']);
  test.same(await found(org, 'middle'), ['once'], 'nothing of a transaction that died');
  test.match(await fillChunks(sql.jobs, org, cut.messageId, 1), { filled: 1, waiting: true });
  test.match(await fillChunks(sql.jobs, org, cut.messageId, 9), { filled: 1, waiting: false });
  test.same(await found(org, 'finish'), ['cut', 'once']);
  test.same(await chunks(org, cut.messageId), await chunks(org, once.messageId));
});

scenario('two at once: one cuts, and the other waits for nobody', async (test) => {
  const org = await createChatOrganization(sql);
  const { messageId } = await say(org, 'long', textWith(60_000, { end: 59_000 }));
  const session = await openSession(test, sql, 'runner_jobs');
  await session.begin();
  test.match(await fillChunks(session, org, messageId, 1), { filled: 1, waiting: true });
  test.match(await fillChunks(sql.jobs, org, messageId), { filled: 0, waiting: false });
  await session.commit();
  test.match(await fillChunks(sql.jobs, org, messageId), { filled: 1, waiting: false });
  test.same(await found(org, 'end'), ['long']);
});

scenario('another organization, or an unknown message, changes and finds nothing', async (test) => {
  const [org, other] = [await createChatOrganization(sql), await createChatOrganization(sql)];
  const { messageId } = await say(org, 'long', textWith(60_000, { ostrich: 59_000 }));
  test.match(await fillChunks(sql.jobs, other, messageId), { filled: 0, waiting: false });
  test.match(await fillChunks(sql.jobs, org, other.organizationId), { filled: 0, waiting: false });
  test.same(await waitingChunks(sql, org), [messageId]);
  await transition(sql.jobs, 'message_chunks_postpone', { organizationId: other.organizationId, messageId });
  test.same(await waitingChunks(sql, org), [messageId]);
  await indexChunks(sql, org);
  test.same(await found(other, 'ostrich'), []);
  test.same(await found(org, 'ostrich'), ['long']);
});

scenario('a message that the job fails at is passed over for a while', async (test) => {
  const org = await createChatOrganization(sql);
  const { messageId } = await say(org, 'long', textWith(60_000, { end: 59_000 }));
  await transition(sql.jobs, 'message_chunks_postpone', { organizationId: org.organizationId, messageId });
  test.same(await waitingChunks(sql, org), []);
  await sql.owner.query('update app.message_chunks set due_at = clock_timestamp() where organization_id = $1', [
    org.organizationId,
  ]);
  test.same(await waitingChunks(sql, org), [messageId]);
  await indexChunks(sql, org);
});

scenario('a chat and an organization that are removed leave no pieces behind', async (test) => {
  const [org, gone] = [await createChatOrganization(sql), await createChatOrganization(sql)];
  const kept = await say(org, 'kept', textWith(60_000, { emu: 59_000 }));
  const done = await say(org, 'removed', textWith(99_000, { emu: 59_000 }));
  const begun = await say(gone, 'gone', textWith(99_000, { emu: 59_000 }));
  await say(gone, 'gone too', textWith(99_000, { emu: 59_000 }));
  await fillChunks(sql.jobs, org, kept.messageId);
  await fillChunks(sql.jobs, org, done.messageId, 1);
  await fillChunks(sql.jobs, gone, begun.messageId, 1);
  await sql.owner.query(
    `update app.run_requests set state = 'cancelled', finished_at = now() where organization_id = $1 and chat_id = $2`,
    [org.organizationId, done.chatId],
  );
  await sql.owner.query(
    `update app.messages set status = 'cancelled', completed_at = now(), search_text = '', revision = revision + 1
     where organization_id = $1 and chat_id = $2 and status = 'pending'`,
    [org.organizationId, done.chatId],
  );
  await sql.owner.query(
    `update app.chats set status = 'archived', archived_at = now() - interval '31 days'
     where organization_id = $1 and id = $2`,
    [org.organizationId, done.chatId],
  );
  const purge = { organizationId: org.organizationId, chatId: done.chatId, limit: 1 };
  test.same(await transition(sql.jobs, 'chat_purge', { ...purge, forget: false }), { done: false, gone: false });
  test.equal((await chunks(org, done.messageId)).length, 1, 'a row a call');
  test.same(await found(org, 'emu'), ['kept'], 'and it is hidden from the first call on');
  while ((await transition(sql.jobs, 'chat_purge', { ...purge, forget: false }))['done'] !== true);
  test.same(await chunks(org, done.messageId), []);
  test.equal((await chunks(org, kept.messageId)).length, 2);

  await deleteOrganization(sql.api, gone.organizationId);
  test.same(await waitingChunks(sql, gone), [], 'nothing of it is due');
  test.same(await found(gone, 'emu'), []);
  const rest = { organizationId: gone.organizationId, limit: 100, forget: true };
  while ((await transition(sql.jobs, 'organization_purge', rest))['done'] !== true);
  const { rows } = await sql.owner.query('select from app.message_chunks where organization_id = $1', [
    gone.organizationId,
  ]);
  test.equal(rows.length, 0);
});

scenario('a removal during the indexing waits for it, and takes all of it', async (test) => {
  const org = await createChatOrganization(sql);
  const { messageId } = await say(org, 'long', textWith(60_000, { end: 59_000 }));
  const [job, owner] = [await openSession(test, sql, 'runner_jobs'), await openSession(test, sql, 'owner')];
  await job.begin();
  await fillChunks(job, org, messageId, 1);
  await owner.begin();
  const removing = owner.query('delete from app.messages where organization_id = $1 and id = $2', [
    org.organizationId,
    messageId,
  ]);
  await owner.waits();
  await job.commit();
  await removing;
  test.match(await owner.query('select from app.message_chunks where message_id = $1', [messageId]), { rows: [] });
  await owner.rollback();
  await indexChunks(sql, org);
});
