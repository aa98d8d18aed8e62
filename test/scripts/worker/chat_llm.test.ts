import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import t from 'tap';
import { z } from 'zod';
import { until } from '../../support/wait.ts';
import { KEY, setUp, usual } from './llm_set_up.ts';
import type { ModelReply } from './model.ts';

t.setTimeout(180_000);

t.test('a model replies word by word', async (t) => {
  let shown = '';
  const {
    work,
    reply: written,
    bodies,
    model,
  } = await setUp(t, (reply) =>
    usual(reply, async () => {
      // Goes on only when the first words are known to have arrived.
      shown = await until('the first words', () => written.text || undefined);
    }),
  );
  t.equal(await work(), true);
  t.equal(shown, 'Hello');
  t.equal(written.text, 'Hello, Größe 😀');
  t.match(bodies('pull')[0], { kinds: ['chat'] });
  t.match(bodies('running'), [{ model: 'small' }]);
  t.match(bodies('complete'), [
    { output: { kind: 'chat_message' }, usage: { inputTokens: 12, outputTokens: 5, toolCalls: 0 } },
  ]);
  t.match(model.asked, [
    {
      path: '/v1/chat/completions',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: { model: 'small', stream: true, stream_options: { include_usage: true } },
    },
  ]);
  t.match(model.asked[0]?.body.messages, [
    { role: 'system', content: /You are Growth.*\nThe chat is called "A chat"/s },
    { role: 'user', content: 'Hello?' },
  ]);
});

t.test('a conversation becomes turns of user and assistant', async (t) => {
  const message = (id: string, role: string, ...parts: object[]) => ({
    ...{ id, role, status: 'complete' },
    parts: parts.map((part, index) => ({ id: `${id}-${index}`, ...part })),
  });
  const options = ['North', 'South'];
  const messages = [
    message('m1', 'user', { kind: 'text', text: 'Sales?' }),
    message(
      'm2',
      'assistant',
      { kind: 'text', text: 'Of which?' },
      { kind: 'question', question: 'Region?', options },
      { kind: 'action', actionId: 'action-id', summary: 'Refund 5 SEK of charge ch_1' },
    ),
    message('m3', 'user', { kind: 'answer', messageId: 'm2', partId: 'm2-1', value: ['North', 'South'] }),
    message('m4', 'assistant'),
    message(
      'asked-id',
      'user',
      { kind: 'deferral', messageId: 'gone', partId: 'gone' },
      { kind: 'answer', messageId: 'm2', partId: 'm2-0', approved: true },
      { kind: 'text', text: 'Go on' },
      { kind: 'attachment', attachmentId: 'a', fileName: 'x.csv', mediaType: 'text/csv', sizeBytes: 5 },
      { kind: 'of-later', text: 'later' },
    ),
  ];
  const chat = { id: 'chat-id', title: 'Sales', summary: 'They sell chairs.' };
  const folder = await mkdtemp(path.join(tmpdir(), 'worker-llm-test-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  await writeFile(path.join(folder, 'first.txt'), 'Answer in one word.\n');
  const argv = ['--instructions', path.join(folder, 'first.txt')];
  const { work, model } = await setUp(t, usual, { chats: [{ chat, messages, earlier: true }] }, ...argv);
  t.equal(await work(), true);
  t.same(model.asked[0]?.body.messages, [
    {
      role: 'system',
      content:
        'Answer in one word.\nThe chat is called "Sales".\nSo far: They sell chairs.\nEarlier messages of it are left out.',
    },
    { role: 'user', content: 'Sales?' },
    {
      role: 'assistant',
      content: 'Of which?\n\nQuestion: Region?\n- North\n- South\n\nProposed action: Refund 5 SEK of charge ch_1',
    },
    {
      role: 'user',
      content: [
        'To "Region?": North, South',
        'To "an earlier question": not answered now',
        'To "Of which?": approved',
        'Go on',
        'Attached file: x.csv (text/csv, 5 bytes). You did not get its content: its content is gone.',
        'later',
      ].join('\n\n'),
    },
  ]);
});

type File = Readonly<{ id: string; mediaType: string; sizeBytes: number }>;

/** One message a file, and one that asks. */
function conversationWith(...files: readonly File[]): object {
  const attached = files.map(({ id, ...file }) => ({
    ...{ id: `m-${id}`, role: 'user', status: 'complete' },
    parts: [{ id: `p-${id}`, kind: 'attachment', attachmentId: id, fileName: `${id}.x`, ...file }],
  }));
  const asked = { id: 'asked-id', role: 'user', status: 'complete', parts: [{ id: 'p', kind: 'text', text: 'So?' }] };
  return { messages: [...attached, asked] };
}

const MANY = 256 * 1024;
const PNG = Buffer.from('89504e470d0a1a0a00ff', 'hex');

t.test(
  'a model gets the texts that are attached, the latest whole, of older ones what there is space for',
  async (t) => {
    const long = 'ä'.repeat(MANY / 2);
    const attachments = { none: 'never', old: long, note: 'Größe\n', asked: PNG };
    const conversation = conversationWith(
      { id: 'none', mediaType: 'text/plain', sizeBytes: 5 },
      { id: 'old', mediaType: 'application/json', sizeBytes: MANY },
      { id: 'note', mediaType: 'text/markdown', sizeBytes: 8 + 1 },
      { id: 'asked', mediaType: 'image/png', sizeBytes: PNG.byteLength },
      { id: 'gone', mediaType: 'text/csv', sizeBytes: 4 },
    );
    const script = { chats: [conversation], attachments: { ...attachments, note: 'Größe\n!' } };
    const { work, model, of, printed } = await setUp(t, usual, script);
    t.equal(await work(), true);
    const content = model.asked[0]?.body.messages[1]?.content;
    t.same(String(content).split('\n\n'), [
      'Attached file: none.x (text/plain, 5 bytes). You did not get its content: later files fill the space.',
      // Nine bytes went to the later one; the character that was cut in two is left out.
      `The beginning of an attached file: old.x (application/json, ${MANY} bytes)\n<content>\n${'ä'.repeat(MANY / 2 - 5)}\n</content>`,
      'Attached file: note.x (text/markdown, 9 bytes)\n<content>\nGröße\n!\n</content>',
      `Attached file: asked.x (image/png, ${PNG.byteLength} bytes). You did not get its content: you cannot read files of this type.`,
      'Attached file: gone.x (text/csv, 4 bytes). You did not get its content: its content is gone.',
      'So?',
    ]);
    t.equal(of('content').length, 3, 'what is not sent is not fetched');
    t.ok(printed.some((line) => line.includes('without gone.x')));
  },
);

t.test('a model that takes images gets them as parts, as far as they are not too large', async (t) => {
  const megabytes = 1024 * 1024;
  const image = (id: string, sizeBytes: number) => ({ id, mediaType: 'image/webp', sizeBytes });
  const whole = 5 * megabytes;
  const attachments = {
    one: Buffer.alloc(whole, 1),
    two: Buffer.alloc(whole, 2),
    three: Buffer.alloc(whole - 1, 3),
    png: PNG,
  };
  const conversation = conversationWith(
    image('older', 9),
    image('one', whole),
    image('two', whole),
    image('three', whole - 1),
    image('large', whole + 1),
    { id: 'paper', mediaType: 'application/pdf', sizeBytes: 7 },
    { id: 'png', mediaType: 'image/png', sizeBytes: 1 },
  );
  const { work, model, of } = await setUp(t, usual, { chats: [conversation], attachments }, '--images');
  t.equal(await work(), true);
  const content = z
    .array(
      z.object({ type: z.string(), text: z.string().optional(), image_url: z.object({ url: z.string() }).optional() }),
    )
    .parse(model.asked[0]?.body.messages[1]?.content);
  t.same(
    content.map(({ text, image_url }) => text ?? image_url?.url.slice(0, 24)),
    [
      'Attached file: older.x (image/webp, 9 bytes). You did not get its content: later images fill the space.',
      `Attached file: one.x (image/webp, ${whole} bytes)`,
      'one.x:',
      'data:image/webp;base64,A',
      `Attached file: two.x (image/webp, ${whole} bytes)`,
      'two.x:',
      'data:image/webp;base64,A',
      `Attached file: three.x (image/webp, ${whole - 1} bytes)`,
      'three.x:',
      'data:image/webp;base64,A',
      `Attached file: large.x (image/webp, ${whole + 1} bytes). You did not get its content: it is too large.`,
      'Attached file: paper.x (application/pdf, 7 bytes). You did not get its content: you cannot read files of this type.',
      'Attached file: png.x (image/png, 1 bytes)',
      'png.x:',
      'data:image/png;base64,iQ',
      'So?',
    ],
  );
  t.equal(content.at(-2)?.image_url?.url, `data:image/png;base64,${PNG.subarray(0, 1).toString('base64')}`);
  t.equal(of('content').length, 4);
});

t.test('a reply without end is stopped where a message ends', async (t) => {
  const replies: ModelReply[] = [];
  const { work, bodies } = await setUp(t, async (reply) => {
    replies.push(reply);
    for (; !reply.aborted(); await new Promise((resolve) => setImmediate(resolve))) reply.say('x'.repeat(50_000));
  });
  t.equal(await work(), false);
  t.match(bodies('fail'), [{ error: { code: 'reply_too_long', retryable: false } }]);
  await until('the request ends', () => replies[0]?.aborted());
});

t.test('with --exec beside it, tasks go to the command', async (t) => {
  const argv = ['--exec', 'echo done > "$OUTPUT_DIR/x"'];
  const { work, model, of, bodies } = await setUp(t, usual, { chats: [], tasks: [{}] }, ...argv);
  t.equal(await work(), true);
  t.equal(model.asked.length, 0);
  t.equal(of('output').length, 1);
  t.match(bodies('complete')[0].output, { kind: 'task_result' });
});
