import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import t, { type Test } from 'tap';
import type { Chat } from '../../../../api/chats/schema.ts';
import type { Message } from '../../../../api/messages/schema.ts';
import { ask, chatPath, createChat, createChatOrganization, followChat } from '../../../api/chats/support.ts';
import { startModel } from '../../../scripts/worker/model.ts';
import { expectSuccess, ownerPath } from '../../../support/api_fixtures.ts';
import { SERVICE_TOKEN, startTestApp, type TestApp } from '../../../support/app.ts';
import { bareEnvironment } from '../../../support/environment.ts';
import { until } from '../../../support/wait.ts';
import { HEARTBEAT_WAIT_MS, heartbeats } from './heartbeats.ts';

// Processes are started, and a machine that is busy takes its time.
t.setTimeout(180_000);

const root = path.resolve(import.meta.dirname, '../../../..');
const SOON_MS = 60_000;

function textOf(message: Message | undefined): string {
  return (message?.parts ?? []).map((part) => (part.kind === 'text' ? part.text : '')).join('');
}

async function askWithFile(app: TestApp, chat: Chat, question: string): Promise<Message> {
  const id = randomUUID();
  const content = Buffer.from('region,total\nnorth,7\n');
  const query = new URLSearchParams({ fileName: 'Größe.csv', mediaType: 'text/csv' });
  expectSuccess(await app.owner.put(chatPath(chat, `/attachments/${id}?${query}`), content), 201);
  const author = { kind: 'human', displayName: 'Anna' };
  const body = { author, parts: [{ kind: 'text', text: question }], attachmentIds: [id] };
  const posted = await app.owner.post<{ assistantMessage: Message }>(chatPath(chat, '/messages'), body);
  return expectSuccess(posted, 202).assistantMessage;
}

async function setUp(t: Test, app: TestApp) {
  const org = await createChatOrganization(app);
  const chat = await createChat(app, org);
  const scratch = await mkdtemp(path.join(tmpdir(), 'worker-chat-real-'));
  t.teardown(() => rm(scratch, { recursive: true, force: true }));
  const lines: string[] = [];
  const worker = (...argv: string[]): ChildProcess => {
    const given = ['--url', app.url, '--organization', org.organizationId, '--scratch', scratch, '--once'];
    const child = spawn(process.execPath, ['scripts/worker/main.ts', '--no-env-file', ...given, ...argv], {
      cwd: root,
      env: bareEnvironment({ BUSINESS_RUNNER_SERVICE_TOKEN: SERVICE_TOKEN }),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child.stdout?.on('data', (chunk) => lines.push(String(chunk)));
    t.teardown(() => void child.kill('SIGKILL'));
    return child;
  };
  const ended = async (child: ChildProcess): Promise<number | null> => (await once(child, 'exit'))[0];
  const message = async ({ id }: Message) =>
    expectSuccess(await app.owner.get<Message>(ownerPath(org, `/messages/${id}`)));
  const stream = await followChat(app, chat);
  t.teardown(() => stream.stop());
  const seen = () => stream.events.map((event) => event.data.message);
  return { org, chat, worker, ended, message, seen, said: () => lines.join('') };
}

t.test('the reference worker replies in real chats', async (t) => {
  const app = await startTestApp(t);

  await t.test('a command: its words are seen while it writes them, its file is there', async (t) => {
    const { chat, worker, ended, message, seen } = await setUp(t, app);
    const reply = await askWithFile(app, chat, 'Total of the north?');
    const gate = path.join(await mkdtemp(path.join(tmpdir(), 'gate-')), 'open');
    t.teardown(() => rm(path.dirname(gate), { recursive: true, force: true }));
    const command = [
      'head -1 message.txt; grep north "$INPUT_DIR"/*.csv',
      `while [ ! -e '${gate}' ]; do sleep 0.05; done; printf "That is all."`,
      'curl -sf -o /dev/null -H "Authorization: Bearer $BUSINESS_RUNNER_TOKEN" ' +
        `$BUSINESS_RUNNER_URL/internal/agent/organizations/${chat.organizationId}/status`,
      `echo '{"summary":"Sales of the north","harnessSessionId":"s"}' > $RESULT_FILE`,
    ].join(' && ');
    const child = worker('--exec', command, '--model', 'some-model');
    const first = 'Total of the north?\nnorth,7\n';
    await until('the first words', () => textOf(seen().at(-1)) === first, SOON_MS);
    t.equal(seen().at(-1)?.status, 'pending');
    writeFileSync(gate, '');
    t.equal(await ended(child), 0);
    await until('the last revision', () => seen().at(-1)?.status === 'complete');
    t.match(await message(reply), { status: 'complete', error: null });
    t.equal(textOf(await message(reply)), `${first}That is all.`);
    t.match((await app.owner.get(chatPath(chat))).data, { summary: 'Sales of the north', harnessSessionId: 's' });
    const revisions = seen().map((one) => one?.revision ?? 0);
    t.same(
      revisions,
      [...new Set(revisions)].sort((a, b) => a - b),
      'revisions rise',
    );
  });

  await t.test('a model: streamed, and the next question comes with what was said', async (t) => {
    const { chat, worker, ended, message, seen } = await setUp(t, app);
    const model = await startModel(t, async ({ say, event, res, asked }) => {
      const words = asked.body.messages.length > 2 ? 'Tuesday.' : 'Monday.';
      say('It is ');
      await until('the first words', () => textOf(seen().at(-1)) === 'It is ', SOON_MS);
      say(words, 'stop');
      event('[DONE]');
      res.end();
    });
    for (const [question, expected] of [
      ['Which day?', 'It is Monday.'],
      ['And then?', 'It is Tuesday.'],
    ] as const) {
      const reply = await ask(app, chat, question);
      t.equal(await ended(worker('--llm', model.url, '--model', 'small')), 0);
      t.equal(textOf(await message(reply)), expected);
    }
    t.same(
      model.asked[1]?.body.messages.slice(1).map(({ role, content }) => [role, content]),
      [
        ['user', 'Which day?'],
        ['assistant', 'It is Monday.'],
        ['user', 'And then?'],
      ],
    );
  });

  await t.test('a model gets the text that is attached', async (t) => {
    const { chat, worker, ended } = await setUp(t, app);
    const model = await startModel(t, ({ say, event, res }) => {
      say('Seven.', 'stop');
      event('[DONE]');
      res.end();
    });
    await askWithFile(app, chat, 'Total of the north?');
    t.equal(await ended(worker('--llm', model.url, '--model', 'small')), 0);
    const file = 'Attached file: Größe.csv (text/csv, 21 bytes)\n<content>\nregion,total\nnorth,7\n\n</content>';
    t.equal(model.asked[0]?.body.messages[1]?.content, `Total of the north?\n\n${file}`);
  });

  await t.test('a failure is told, and the chat goes on', async (t) => {
    const { chat, worker, ended, message } = await setUp(t, app);
    const reply = await ask(app, chat);
    t.equal(await ended(worker('--exec', 'echo half; exit 3')), 1);
    t.match(await message(reply), { status: 'failed', error: { code: 'command_failed', retryable: true } });
    t.equal(textOf(await message(reply)), 'half\n');
    t.match(await ask(app, chat), { status: 'pending' });
  });
});

t.test('a cancel stops the command at the next write, and by the heartbeat that waits', async (t) => {
  const app = await startTestApp(t, { config: { leaseSeconds: 9_000 } });
  for (const command of ['while :; do echo on; sleep 0.1; done', 'echo on; sleep 300']) {
    const { chat, worker, ended, message, seen, said } = await setUp(t, app);
    const reply = await ask(app, chat);
    const earlier = heartbeats(app).length;
    const child = worker('--exec', command);
    await until('the first words', () => textOf(seen().at(-1)).startsWith('on'), SOON_MS);
    t.equal(heartbeats(app).length, earlier, 'the first heartbeat still waits');
    const path = chatPath(chat, `/messages/${reply.id}/cancel`);
    t.match(await app.owner.post(path), { status: 200, data: { status: 'cancelling' } });
    t.equal(await ended(child), 1);
    t.ok(Number(heartbeats(app)[earlier]?.['ms']) < HEARTBEAT_WAIT_MS, 'and does not wait to its end');
    t.match(said(), /cancelled: The run was cancelled/);
    t.match(await message(reply), { status: 'cancelled', error: null });
    await until('the last revision', () => seen().at(-1)?.status === 'cancelled');
    t.match(await ask(app, chat), { status: 'pending' });
  }
});
