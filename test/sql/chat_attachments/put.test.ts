import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  createChat,
  createChatOrganization,
  createOnboardingChat,
  putAttachment,
  updateChat,
} from '../../support/chat_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

scenario('an attachment is recorded once; the same id with other bytes is refused', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const id = randomUUID();
  test.same(await putAttachment(sql.api, org, chat.id, { id, storageKey: null }), {
    attachment: null,
    stored: false,
    storageKey: null,
  });
  const first = await putAttachment(sql.api, org, chat.id, { id, storageKey: 'k1' });
  test.match(first, { stored: true, attachment: { id, chat_id: chat.id, storage_key: 'k1', size_bytes: 5 } });
  const again = await putAttachment(sql.api, org, chat.id, { id, storageKey: 'k2' });
  test.same(again, { ...first, stored: false });
  test.same(await putAttachment(sql.api, org, chat.id, { id, storageKey: null }), again, 'the look says so too');
  const notAllowed = { status: 409, code: 'attachment_not_allowed' };
  test.match(await refusal(putAttachment(sql.api, org, chat.id, { id, bytes: 'other' })), notAllowed);
  const elsewhere = await createChat(sql, org);
  test.match(await putAttachment(sql.api, org, elsewhere.id, { id, bytes: 'other' }), { stored: true });
  await updateChat(sql.api, org, chat.id, { status: 'archived' });
  test.match(await refusal(putAttachment(sql.api, org, chat.id)), notAllowed);
  const onboarding = await createOnboardingChat(sql, org);
  test.match(await refusal(putAttachment(sql.api, org, onboarding.id, { storageKey: null })), notAllowed);
});

scenario('two uploads with one id at once: one is recorded', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const id = randomUUID();
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  await putAttachment(session, org, chat.id, { id, storageKey: 'k1' });
  const second = putAttachment(rival, org, chat.id, { id, storageKey: 'k2' });
  await rival.waits();
  await session.commit();
  test.match(await second, { stored: false, attachment: { storage_key: 'k1' } });
});
