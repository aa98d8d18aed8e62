import t from 'tap';
import { until } from '../../support/wait.ts';
import { setUpChat } from './chat_set_up.ts';
import { begin, KEY, setUp } from './llm_set_up.ts';
import type { ModelReply } from './model.ts';
import type { Script } from './stand_in.ts';

t.setTimeout(180_000);

t.test('what goes wrong at the model fails the reply, and says whether to try again', async (t) => {
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
      { code: 'reply_empty', retryable: true },
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
  for (const [name, serve, error] of cases) {
    const { work, bodies, of, printed } = await setUp(t, serve);
    t.equal(await work(), false, name);
    t.match(bodies('fail'), [{ error }], name);
    t.equal(of('complete').length, 0, name);
    t.notOk(JSON.stringify([bodies('fail'), printed]).includes(KEY), 'the key is never told');
  }
});

t.test('text that comes as parts is read, and what a model only thinks is not', async (t) => {
  const delta = (content: unknown) => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });
  const { work, reply } = await setUp(t, (model) => {
    model.event(delta([{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] }]));
    model.event(
      delta([
        { type: 'text', text: 'Hello' },
        { type: 'reference', reference_ids: [1] },
      ]),
    );
    model.event(delta([{ type: 'text', text: ', you' }]));
    model.say('.', 'stop');
    model.event('[DONE]');
    model.res.end();
  });
  t.equal(await work(), true);
  t.equal(reply.text, 'Hello, you.');
});

t.test('an endpoint that sends comments is not silent', async (t) => {
  let givenUp = 0;
  const silent = async () => {
    const { work } = await setUp(t, begin([]), {}, '--silence', '1');
    await work();
    givenUp += 1;
  };
  const { work, reply } = await setUp(
    t,
    async (model) => {
      model.say('Hel');
      // No event for as long as it takes the worker to give up two silent endpoints, one after the other.
      const over = silent().then(silent);
      await until('two silent endpoints are given up', () => {
        model.res.write(': keep-alive\n\n');
        return givenUp === 2;
      });
      await over;
      model.say('lo', 'stop');
      model.event('[DONE]');
      model.res.end();
    },
    {},
    ...['--silence', '1'],
  );
  t.equal(await work(), true);
  t.equal(reply.text, 'Hello');
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
  t.equal(begun.reply.text, 'Hel');
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
    respond: (verb) => (verb === 'heartbeat' ? [409, 'run_lease_expired'] : null),
  };
  for (const [name, script, code] of [
    ['by a heartbeat', byHeartbeat, 'cancelled'],
    ['by a write', byWrite, 'cancelled'],
    ['lost', lost, undefined],
    ['stopped', {}, 'worker_stopped'],
  ] as const) {
    const replies: ModelReply[] = [];
    const { work, bodies, of, reply: written, stop } = await setUp(t, begin(replies), script);
    const working = work();
    if (code === 'worker_stopped') await until('the first words', () => written.text !== '').then(() => stop.abort());
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
