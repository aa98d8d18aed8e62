import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  cancelMessage,
  claimTurn,
  completeTurn,
  createChat,
  createChatOrganization,
  createOnboardingChat,
  exchange,
  type Message,
  putAttachment,
  send,
  startTurn,
  text,
} from '../../support/chat_fixtures.ts';
import { failRun, type TestOrganization } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const color = { id: 'color', kind: 'question', question: 'Which?', options: ['red', 'blue'] };
const sizes = { id: 'sizes', kind: 'question', question: 'Which?', options: ['s', 'm'], allowMultiple: true };
const free = { id: 'free', kind: 'question', question: 'Which?', options: ['a'], allowFreeText: true };
const legacy = { id: 'legacy', kind: 'question', question: 'What?' };
const note = { id: 'note', kind: 'context_note', text: 'We sell shoes', status: 'pending' };
const approval = { id: 'approval', kind: 'approval', text: 'Send it?' };

type Asked = Readonly<{ org: TestOrganization; chatId: string; message: Message }>;

async function ask(parts: readonly JsonObject[], make = createChat): Promise<Asked> {
  const org = await createChatOrganization(sql);
  const chat = await make(sql, org);
  return { org, chatId: chat.id, message: await exchange(sql, org, chat.id, [text('I ask'), ...parts]) };
}

function answer({ message }: Asked, partId: string, fields: JsonObject): JsonObject {
  return { messageId: message.id, partId, ...fields };
}

function sendAnswers({ org, chatId }: Asked, answers: readonly JsonObject[], body: JsonObject = {}) {
  return send(sql.api, org, chatId, { answers, ...body });
}

/** `path code` of every issue of a refusal. */
async function issues(work: Promise<unknown>): Promise<string[]> {
  return (await refusal(work)).issues.map(({ path, code }) => `${path} ${code}`);
}

scenario('an ordinary message waits for the answers: an issue for each question', async (test) => {
  const asked = await ask([color, sizes, { ...note, id: 'known', status: 'approved' }, approval]);
  const unanswered = ['answers unanswered', 'answers unanswered', 'answers unanswered'];
  test.same(await issues(sendAnswers(asked, [], { parts: [text('Hello')] })), unanswered);
  test.same(await issues(sendAnswers(asked, [answer(asked, 'color', { value: 'red' })])), unanswered.slice(1));
});

scenario('answers are kept in order, before the text and the attachments', async (test) => {
  const asked = await ask([color, legacy, sizes, free, note, approval]);
  const attachmentId = randomUUID();
  await putAttachment(sql.api, asked.org, asked.chatId, { id: attachmentId });
  const { userMessage } = await sendAnswers(
    asked,
    [
      answer(asked, 'color', { value: 'red' }),
      answer(asked, 'legacy', { deferred: true }),
      answer(asked, 'sizes', { value: ['m', 's'] }),
      answer(asked, 'free', { value: 'anything' }),
      answer(asked, 'note', { approved: false }),
      answer(asked, 'approval', { approved: true }),
    ],
    { parts: [text('So be it')], attachmentIds: [attachmentId] },
  );
  const messageId = asked.message.id;
  test.match(userMessage.parts, [
    { kind: 'answer', messageId, partId: 'color', value: 'red' },
    { kind: 'deferral', messageId, partId: 'legacy' },
    { kind: 'answer', messageId, partId: 'sizes', value: ['m', 's'] },
    { kind: 'answer', messageId, partId: 'free', value: 'anything' },
    { kind: 'answer', messageId, partId: 'note', approved: false },
    { kind: 'answer', messageId, partId: 'approval', approved: true },
    { kind: 'text', text: 'So be it' },
    { kind: 'attachment', attachmentId },
  ]);
  test.equal(new Set(userMessage.parts.map(({ id }) => id)).size, 8);
});

scenario('answers that do not fit are refused, an issue each', async (test) => {
  const asked = await ask([color, sizes, legacy, note]);
  const good = [
    answer(asked, 'color', { value: 'red' }),
    answer(asked, 'sizes', { value: 's' }),
    answer(asked, 'legacy', { value: 'words' }),
    answer(asked, 'note', { approved: true }),
  ] as const;
  const [first, second, third, fourth] = good;
  const cases: Readonly<Record<string, [readonly JsonObject[], string[]]>> = {
    'out of order': [[second, first, third, fourth], ['answers.1 out_of_order']],
    doubled: [[first, first, second, third, fourth], ['answers.1 doubled']],
    'an unknown part': [[...good, answer(asked, 'nothing', { value: 'x' })], ['answers.4 unknown_question']],
    'an unknown message': [
      [{ ...first, messageId: randomUUID() }, second, third, fourth],
      ['answers.0 unknown_question', 'answers unanswered'],
    ],
    'a part that asks nothing': [
      [...good, answer(asked, asked.message.parts[0]?.id ?? '', { value: 'x' })],
      ['answers.4 not_pending'],
    ],
    'no option': [[{ ...first, value: 'green' }, second, third, fourth], ['answers.0.value not_an_option']],
    'a list for one': [[{ ...first, value: ['red', 'blue'] }, second, third, fourth], ['answers.0.value one_value']],
    'an option twice': [[first, { ...second, value: ['s', 's'] }, third, fourth], ['answers.1.value doubled']],
    'an empty list': [[first, { ...second, value: [] }, third, fourth], ['answers.1.value empty']],
    'no option among many': [
      [first, { ...second, value: ['s', 'x'] }, third, fourth],
      ['answers.1.value not_an_option'],
    ],
    'no text': [[first, second, { ...third, value: ' ' }, fourth], ['answers.2.value empty']],
    'a list for a legacy question': [
      [first, second, { ...third, value: ['a'] }, fourth],
      ['answers.2.value one_value'],
    ],
    'an approval of a question': [
      [answer(asked, 'color', { approved: true }), second, third, fourth],
      ['answers.0 not_an_approval'],
    ],
    'a deferral is no approval': [
      [first, second, third, answer(asked, 'note', { deferred: true })],
      ['answers.3 approval_required'],
    ],
    'nor is a value': [
      [first, second, third, answer(asked, 'note', { value: 'yes' })],
      ['answers.3 approval_required'],
    ],
    'nor both': [[first, second, third, { ...fourth, deferred: true }], ['answers.3 approval_required']],
    'neither value nor deferral': [
      [answer(asked, 'color', {}), second, third, fourth],
      ['answers.0 value_or_deferral'],
    ],
    'value and deferral': [[{ ...first, deferred: true }, second, third, fourth], ['answers.0 value_or_deferral']],
    everything: [
      [
        { ...second, value: 'x' },
        { ...first, value: 'x' },
      ],
      [
        'answers.0.value not_an_option',
        'answers.1 out_of_order',
        'answers.1.value not_an_option',
        'answers unanswered',
        'answers unanswered',
      ],
    ],
  };
  for (const [name, [answers, expected]] of Object.entries(cases)) {
    test.same(await issues(sendAnswers(asked, answers)), expected, name);
  }
  await sendAnswers(asked, good);
});

scenario('questions without options are deferred in general chats alone; others everywhere', async (test) => {
  const general = await ask([legacy, color]);
  const deferrals = (asked: Asked) => [
    answer(asked, 'legacy', { deferred: true }),
    answer(asked, 'color', { deferred: true }),
  ];
  test.match((await sendAnswers(general, deferrals(general))).userMessage.parts, [
    { kind: 'deferral' },
    { kind: 'deferral' },
  ]);
  const onboarding = await ask([legacy, color], createOnboardingChat);
  test.same(await issues(sendAnswers(onboarding, deferrals(onboarding))), ['answers.0 not_deferrable']);
  await sendAnswers(onboarding, [
    answer(onboarding, 'legacy', { value: 'words' }),
    answer(onboarding, 'color', { deferred: true }),
  ]);
});

scenario('questions wait in the last reply alone, once it is complete', async (test) => {
  const asked = await ask([color]);
  const { org, chatId } = asked;
  const red = answer(asked, 'color', { value: 'red' });
  const { assistantMessage } = await sendAnswers(asked, [red]);
  await cancelMessage(sql.api, org, assistantMessage);
  test.same(
    await issues(sendAnswers(asked, [red], { parts: [text('again')] })),
    ['answers.0 not_pending'],
    'it is answered',
  );
  await send(sql.api, org, chatId, { parts: [text('go on')] });
  const turn = await startTurn(sql.api, await claimTurn(sql, org));
  await failRun(sql.api, turn);
  await send(sql.api, org, chatId, { parts: [text('go on')] });
  await completeTurn(sql.api, await startTurn(sql.api, await claimTurn(sql, org)), { parts: [color] });
  test.same(
    await issues(sendAnswers(asked, [red])),
    ['answers.0 not_pending', 'answers unanswered'],
    'the new one waits',
  );
});
