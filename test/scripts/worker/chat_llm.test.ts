import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import t, { type Test } from 'tap';
import { until } from '../../support/wait.ts';
import { setUpChat } from './chat_set_up.ts';
import { type ModelReply, startModel } from './model.ts';
import type { Script } from './stand_in.ts';

t.setTimeout(180_000);

const KEY = 'key-of-the-model-0123456789';

async function setUp(
  t: Test,
  answer: (reply: ModelReply) => void | Promise<void>,
  script: Script = {},
  ...argv: string[]
) {
  const model = await startModel(t, answer);
  const given = ['--llm', model.url, '--model', 'small', ...argv];
  return { ...(await setUpChat(t, script, given, KEY)), model };
}

/** What a good model does, between the first words and the last. */
function usual({ event, say, res }: ModelReply, between: () => void | Promise<void> = () => {}) {
  event({ id: 'x', choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] });
  say('Hello');
  return Promise.resolve(between()).then(() => {
    say(', Größe 😀', 'stop');
    event({ id: 'x', choices: [], usage: { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 } });
    event('[DONE]');
    res.end();
  });
}

/** Says the first words, and then nothing. */
function begin(replies: ModelReply[]) {
  return (reply: ModelReply): void => {
    replies.push(reply);
    reply.say('Hel');
  };
}

t.test('a model answers word by word', async (t) => {
  let shown = '';
  const { work, answer, bodies, model } = await setUp(t, (reply) =>
    usual(reply, async () => {
      // Goes on only when the first words are known to have arrived.
      shown = await until('the first words', () => answer.text || undefined);
    }),
  );
  t.equal(await work(), true);
  t.equal(shown, 'Hello');
  t.equal(answer.text, 'Hello, Größe 😀');
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
    message('m2', 'assistant', { kind: 'text', text: 'Of which?' }, { kind: 'question', question: 'Region?', options }),
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
    { role: 'assistant', content: 'Of which?\n\nQuestion: Region?\n- North\n- South' },
    {
      role: 'user',
      content: [
        'To "Region?": North, South',
        'To "an earlier question": not answered now',
        'To "Of which?": approved',
        'Go on',
        'Attached file: x.csv (text/csv, 5 bytes)',
        'later',
      ].join('\n\n'),
    },
  ]);
});

t.test('what goes wrong at the model fails the answer, and says whether to try again', async (t) => {
  const json = (status: number, message: string) => (reply: ModelReply) =>
    void reply.res
      .writeHead(status, { 'content-type': 'application/json' })
      .end(JSON.stringify({ error: { message, type: 'x' } }));
  const cases: [string, (reply: ModelReply) => void, object][] = [
    [
      'a wrong key',
      json(401, `Incorrect ${KEY}`),
      { code: 'model_refused', message: /key \(HTTP 401\)/, retryable: false },
    ],
    [
      'no such model',
      json(404, `no model\nfor ${KEY}`),
      { code: 'model_refused', message: /HTTP 404: no model for …\)/, retryable: false },
    ],
    ['too many requests', json(429, 'slow down'), { code: 'model_busy', retryable: true }],
    [
      'a broken server',
      (reply) => void reply.res.writeHead(502).end('<html>'),
      { code: 'model_failed', message: /HTTP 502\)/, retryable: true },
    ],
    [
      'a redirect',
      (reply) => void reply.res.writeHead(307, { location: '/x' }).end(),
      { code: 'model_refused', retryable: false },
    ],
    [
      'no stream',
      (reply) => void reply.res.writeHead(200, { 'content-type': 'application/json' }).end('{}'),
      { code: 'model_invalid', retryable: false },
    ],
    ['no JSON', (reply) => reply.event('{"choices'), { code: 'model_invalid' }],
    ['other JSON', (reply) => reply.event({ choices: 'no' }), { code: 'model_invalid' }],
    [
      'no lines',
      (reply) =>
        void reply.res.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: ${'x'.repeat(3_000_000)}`),
      { code: 'model_invalid' },
    ],
    [
      'an error in the stream',
      (reply) => reply.event({ error: { message: 'out of memory' } }),
      { code: 'model_failed', message: /out of memory/, retryable: true },
    ],
    [
      'a connection that breaks',
      (reply) => {
        reply.say('Hel');
        reply.res.write('', () => reply.res.destroy());
      },
      { code: 'model_broke_off', retryable: true },
    ],
    [
      'an end in the middle',
      (reply) => {
        reply.say('Hel');
        reply.res.end();
      },
      { code: 'model_broke_off', retryable: true },
    ],
    [
      'no words',
      (reply) => {
        reply.say('', 'stop');
        reply.event('[DONE]');
      },
      { code: 'answer_empty', retryable: true },
    ],
    [
      'a filter',
      (reply) => {
        reply.say('Hel', 'content_filter');
        reply.event('[DONE]');
      },
      { code: 'model_filtered', retryable: false },
    ],
  ];
  for (const [name, answer, error] of cases) {
    const { work, bodies, of, said } = await setUp(t, answer);
    t.equal(await work(), false, name);
    t.match(bodies('fail'), [{ error }], name);
    t.equal(of('complete').length, 0, name);
    t.notOk(JSON.stringify([bodies('fail'), said]).includes(KEY), 'the key is never told');
  }
});

t.test('an endpoint that is away or silent is given up', async (t) => {
  const away = await setUpChat(t, {}, ['--llm', 'http://127.0.0.1:9/v1', '--model', 'small']);
  t.equal(await away.work(), false);
  t.match(away.bodies('fail'), [{ error: { code: 'model_unreachable', retryable: true } }]);
  const replies: ModelReply[] = [];
  const mute = await setUp(t, (reply) => void replies.push(reply), {}, '--silence', '1');
  t.equal(await mute.work(), false);
  t.match(mute.bodies('fail'), [{ error: { code: 'model_timeout', message: /silent for 1 s/, retryable: true } }]);
  const begun = await setUp(t, begin(replies), {}, '--silence', '1');
  t.equal(await begun.work(), false);
  t.equal(begun.answer.text, 'Hel');
  t.match(begun.bodies('fail'), [{ error: { code: 'model_timeout' } }]);
  const endless = await setUp(
    t,
    async (reply) => {
      replies.push(reply);
      for (; !reply.aborted(); await new Promise((resolve) => setTimeout(resolve, 20))) reply.say('on ');
    },
    {},
    ...['--timeout', '1'],
  );
  t.equal(await endless.work(), false);
  t.match(endless.bodies('fail'), [{ error: { code: 'model_timeout', message: /longer than 1 s/ } }]);
  for (const reply of replies) await until('the request ends', reply.aborted);
});

t.test('a cancel, a lost lease, a stop: the request is aborted', async (t) => {
  const byHeartbeat: Script = { heartbeatIntervalMs: 50, heartbeat: (nth) => (nth >= 3 ? 'cancelling' : 'running') };
  const byWrite: Script = { written: () => 'cancelling' };
  const lost: Script = {
    heartbeatIntervalMs: 50,
    answer: (verb) => (verb === 'heartbeat' ? [409, 'run_lease_expired'] : null),
  };
  for (const [name, script, code] of [
    ['by a heartbeat', byHeartbeat, 'cancelled'],
    ['by a write', byWrite, 'cancelled'],
    ['lost', lost, undefined],
    ['stopped', {}, 'worker_stopped'],
  ] as const) {
    const replies: ModelReply[] = [];
    const { work, bodies, of, answer, stop } = await setUp(t, begin(replies), script);
    const working = work();
    if (code === 'worker_stopped') await until('the first words', () => answer.text !== '').then(() => stop.abort());
    t.equal(await working, false, name);
    const [reply] = replies;
    if (reply) await until('the request ends', reply.aborted);
    t.equal(of('complete').length, 0, name);
    t.same(
      bodies('fail').map((body) => body.error.code),
      code ? [code] : [],
      name,
    );
  }
});

t.test('an answer without end is stopped where a message ends', async (t) => {
  const replies: ModelReply[] = [];
  const { work, bodies } = await setUp(t, async (reply) => {
    replies.push(reply);
    for (; !reply.aborted(); await new Promise((resolve) => setImmediate(resolve))) reply.say('x'.repeat(50_000));
  });
  t.equal(await work(), false);
  t.match(bodies('fail'), [{ error: { code: 'answer_too_long', retryable: false } }]);
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
