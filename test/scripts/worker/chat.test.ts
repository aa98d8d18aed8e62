import { readdir, writeFile } from 'node:fs/promises';
import t from 'tap';
import { pullLoop } from '../../../scripts/worker/pull_loop.ts';
import { until } from '../../support/wait.ts';
import { setUpChat } from './chat_set_up.ts';
import { ORGANIZATION, type Script } from './stand_in.ts';

// Processes are started, and a machine that is busy takes its time.
t.setTimeout(180_000);

const setUp = (t: Parameters<typeof setUpChat>[0], script: Script, command: string) =>
  setUpChat(t, script, ['--exec', command]);

t.test('a command replies with what it writes, while it writes it', async (t) => {
  const command = [
    'test "$BUSINESS_RUNNER_MODE$BUSINESS_RUNNER_TOKEN" = chatexecution-token || exit 9',
    'printf "You said: "; cat message.txt; echo to-the-terminal >&2',
    // Goes on only when the first words are known to have arrived.
    'while [ ! -e go ]; do sleep 0.05; done; printf "Gr\\303"; sleep 0.2; printf "\\266\\303\\237e"',
    `echo '{"summary":"Greetings","harnessSessionId":"s-1"}' > $RESULT_FILE`,
    `echo '{"inputTokens":3,"outputTokens":4}' > $USAGE_FILE`,
    'grep -q asked-id conversation.json && grep -q chat-id run.json',
  ].join('\n');
  const { work, reply, bodies, of, printed, scratch } = await setUp(t, {}, command);
  const working = work();
  await until('the first words', () => reply.text.includes('Hello?'));
  const [runFolder = ''] = await readdir(scratch);
  await writeFile(`${scratch}/${runFolder}/go`, '');
  t.equal(await working, true);
  t.equal(reply.text, 'You said: Hello?\nGröße');
  t.match(bodies('pull')[0], { kinds: ['task', 'chat'] });
  const fence = { organizationId: ORGANIZATION, leaseToken: '1.secret' };
  t.match(bodies('start'), [{ ...fence, workerId: 'me' }]);
  t.match(bodies('running'), [{ ...fence, harness: 'reference-worker', model: 'none' }]);
  t.match(of('conversation')[0]?.headers, { 'x-organization-id': ORGANIZATION, 'x-lease-token': '1.secret' });
  t.same(
    bodies('message').map((body) => body.baseRevision),
    bodies('message').map((_, index) => index + 1),
  );
  t.match(bodies('complete'), [
    {
      ...fence,
      output: { kind: 'chat_message', summary: 'Greetings', harnessSessionId: 's-1' },
      usage: { inputTokens: 3, outputTokens: 4, toolCalls: 0 },
      harness: 'reference-worker',
    },
  ]);
  t.notOk('parts' in bodies('complete')[0].output, 'what was written stays');
  t.ok(printed.some((line) => line.endsWith('| to-the-terminal')));
  t.same(await readdir(scratch), [], 'the folder of the turn is gone');
});

t.test('parts may take the place of the output', async (t) => {
  const result = '{"parts":[{"kind":"question","question":"Which?","options":["a","b"]}]}';
  const { work, bodies, of } = await setUp(t, {}, `echo '${result}' > $RESULT_FILE`);
  t.equal(await work(), true);
  t.equal(of('message').length, 0);
  t.match(bodies('complete')[0].output, { kind: 'chat_message', parts: [{ kind: 'question', options: ['a', 'b'] }] });
});

t.test('a command that fails, says nothing or says why fails the reply', async (t) => {
  for (const [command, error] of [
    ['echo half; exit 3', { code: 'command_failed', message: 'The command ended with exit status 3', retryable: true }],
    ['true', { code: 'reply_empty', retryable: true }],
    [
      `echo '{"kind":"failed","code":"no","message":"Not today","retryable":false}' > $RESULT_FILE`,
      { code: 'no', message: 'Not today', retryable: false },
    ],
    ['echo x; echo "{" > $RESULT_FILE', { code: 'result_invalid' }],
    ['yes', { code: 'reply_too_long', retryable: false }],
  ] as const) {
    const { work, bodies, of } = await setUp(t, {}, command);
    t.equal(await work(), false, command);
    t.match(bodies('fail'), [{ error }], command);
    t.equal(of('complete').length, 0, command);
  }
  const half = await setUp(t, {}, 'echo half; exit 3');
  await half.work();
  t.equal(half.reply.text, 'half\n', 'what was written stays to be read');
  const slow = await setUpChat(t, {}, ['--exec', 'echo begun; sleep 300', '--timeout', '1']);
  t.equal(await slow.work(), false);
  t.match(slow.bodies('fail'), [{ error: { code: 'command_timeout' } }]);
});

t.test('lost responses: each write is sent again as it was, and nothing is written twice', async (t) => {
  const script: Script = {
    respond: (_, nth) => (nth === 1 ? 'drop' : nth === 2 ? [503, 'service_unavailable'] : null),
  };
  const { work, reply, of } = await setUp(t, script, 'echo one; sleep 0.3; echo two');
  t.equal(await work(), true);
  t.equal(reply.text, 'one\ntwo\n');
  for (const verb of ['start', 'running', 'conversation', 'message', 'complete']) {
    const calls = of(verb).slice(0, 3);
    t.equal(calls.length, 3, verb);
    t.equal(new Set(calls.map((call) => call.body.toString())).size, 1, `${verb} is the same call`);
  }
  t.equal(of('fail').length, 0);
});

t.test('a cancel that a heartbeat or a write says stops the command, and the turn yields', async (t) => {
  const byWrite: Script = { written: (nth) => (nth >= 2 ? 'cancelling' : 'pending') };
  const byHeartbeat: Script = { heartbeatIntervalMs: 50, heartbeat: (nth) => (nth >= 2 ? 'cancelling' : 'running') };
  for (const script of [byWrite, byHeartbeat]) {
    const { work, bodies, of } = await setUp(t, script, 'echo one; while sleep 0.3; do echo two; done');
    t.equal(await work(), false);
    t.match(bodies('heartbeat')[0], { waitMs: script.heartbeatIntervalMs ?? 20_000 }, 'it waits for the cancel');
    t.match(bodies('fail'), [{ error: { code: 'cancelled', retryable: false } }]);
    t.equal(of('complete').length, 0);
  }
});

t.test('a lost lease stops the command, and nothing is reported any more', async (t) => {
  for (const lost of ['heartbeat', 'message']) {
    const script: Script = {
      heartbeatIntervalMs: 50,
      respond: (verb) => (verb === lost ? [409, 'run_lease_expired'] : null),
    };
    const { work, of, printed } = await setUp(t, script, 'echo one; sleep 300');
    t.equal(await work(), false);
    t.equal(of('fail').length + of('complete').length, 0, lost);
    t.match(printed.at(-1), /given up: lease_lost/);
  }
});

t.test('a reply that the API refuses becomes a failure, while the lease holds', async (t) => {
  for (const refused of ['complete', 'message']) {
    const script: Script = { respond: (verb) => (verb === refused ? [400, 'validation_failed'] : null) };
    const { work, bodies } = await setUp(t, script, 'echo one; sleep 0.2');
    t.equal(await work(), false);
    t.match(bodies('fail'), [{ error: { code: 'reply_refused', retryable: false } }], refused);
  }
});

t.test('attachments lie where conversation.json says', async (t) => {
  const attachment = (id: string, fileName: string, sizeBytes: number) => {
    const part = { id: `part-${id}`, kind: 'attachment', attachmentId: id, fileName, mediaType: 'text/csv', sizeBytes };
    return { id: `message-${id}`, role: 'user', status: 'complete', parts: [part] };
  };
  const asked = {
    id: 'asked-id',
    role: 'user',
    status: 'complete',
    parts: [{ id: 'p', kind: 'text', text: 'Add up' }],
  };
  const messages = [
    attachment('one', '../../Größe "1".CSV', 4),
    attachment('gone', 'gone.csv', 4),
    attachment('large', 'large.csv', 300_000_000),
    { ...asked, parts: [...asked.parts, ...attachment('two', 'noext', 3).parts] },
  ];
  const script: Script = { chats: [{ messages }], attachments: { one: 'a\nb\n', two: 'xyz' } };
  const command =
    'cat inputs/one.csv "$INPUT_DIR/two"; grep -c \'"path": null\' conversation.json; grep \'"path": "inputs\' conversation.json; cat message.txt';
  const { work, reply } = await setUp(t, script, command);
  t.equal(await work(), true);
  t.match(
    reply.text,
    /^a\nb\nxyz2\n +"path": "inputs\/one\.csv"\n +"path": "inputs\/two"\nAdd up\n\nAttached file: noext/,
  );
});

t.test('a worker that is stopped hands its turn back as failed', async (t) => {
  const { work, bodies, reply, stop } = await setUp(t, {}, 'echo begun; sleep 300');
  const working = work();
  await until('the command runs', () => reply.text !== '');
  stop.abort();
  t.equal(await working, false);
  t.match(bodies('fail'), [{ error: { code: 'worker_stopped', retryable: true } }]);
});

t.test('a long task does not keep a chat waiting', async (t) => {
  const command = 'if [ "$BUSINESS_RUNNER_MODE" = chat ]; then echo hi; else sleep 300; fi';
  const { worker, of, drain, stop } = await setUp(t, { tasks: [{}] }, command);
  const working = pullLoop({ ...worker, options: { ...worker.options, once: false } });
  await until('the reply', () => of('complete').length === 1);
  t.equal(of('start').length, 2, 'the task runs');
  drain.abort();
  stop.abort();
  await working;
});
