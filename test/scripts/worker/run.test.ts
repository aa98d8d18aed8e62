import { createHash } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import t, { type Test } from 'tap';
import { ApiError } from '../../../scripts/worker/api.ts';
import { openFolder } from '../../support/folders.ts';
import { setUp } from './run_world.ts';
import { ORGANIZATION, type Script } from './stand_in.ts';

// Processes are started, and a machine that is busy takes its time.
t.setTimeout(180_000);

/** A command that waits, and what lets it go. */
async function openGate(t: Test) {
  const file = path.join(await openFolder(t), 'open');
  return { wait: `until [ -e '${file}' ]; do sleep 0.05; done`, open: () => writeFileSync(file, '') };
}

const runIdOf = (bodies: { runId: string }[]) => bodies[0]?.runId;

t.test('an output whose name is refused is left out and named, and the others are stored', async (t) => {
  const command = 'cd "$OUTPUT_DIR" && echo 1 > a && echo 2 > A && echo 3 > b && mkdir .git && echo 4 > .git/config';
  const respond = (verb: string, nth: number): [number, string] | null =>
    verb === 'output' && nth === 1 ? [400, 'validation_failed'] : null;
  const { work, of, bodies } = await setUp(t, { respond }, command);
  t.equal(await work(), true);
  t.same(
    of('output').map((call) => call.path.split('/').at(-1)),
    ['A', 'a', 'b'],
  );
  t.match(bodies('complete'), [{ output: { result: { artifacts: [{ path: 'a' }, { path: 'b' }] } } }]);
  const entries = bodies('logs').flatMap((body) => body.entries);
  t.match(
    entries.filter((entry) => entry.status === 'skipped'),
    [{ label: 'Left out .git', detail: 'the folder of a repository' }, { label: 'Left out A' }],
  );
});

t.test('a name that is no text costs no other file, and many links are counted', async (t) => {
  const command = [
    'cd "$OUTPUT_DIR" && echo 1 > good',
    `node -e "require('fs').writeFileSync(Buffer.from([0x66, 0xff]), '')"`,
    'for n in $(seq 100 129); do ln -s good "$n"; done',
  ].join('\n');
  const { work, bodies } = await setUp(t, {}, command);
  t.equal(await work(), true);
  t.match(bodies('complete'), [{ output: { result: { artifacts: [{ path: 'good' }] } } }]);
  const skipped = bodies('logs')
    .flatMap((body) => body.entries)
    .filter((entry) => entry.status === 'skipped');
  t.equal(skipped.length, 21);
  t.match(skipped.at(-1), { label: 'Left out 11 more' });
});

t.test('a run whose command removed the output folder goes on without outputs', async (t) => {
  const { work, bodies } = await setUp(t, {}, 'rm -r "$OUTPUT_DIR"');
  t.equal(await work(), true);
  t.match(bodies('complete'), [{ output: { result: { kind: 'completed' } } }]);
  t.match(
    bodies('logs')
      .flatMap((body) => body.entries)
      .filter((entry) => entry.status === 'skipped'),
    [{ label: 'Left out OUTPUT_DIR', detail: 'the command removed it' }],
  );
});

t.test('a run goes from its start to its artifacts', async (t) => {
  const command = [
    'test "$BUSINESS_RUNNER_TOKEN" = execution-token && test -n "$BUSINESS_RUNNER_URL" || exit 9',
    'echo "Counting" >> "$PROGRESS_FILE"',
    `echo '{"label":"Counted","detail":"2 rows","category":"verification","status":"completed"}' >> "$PROGRESS_FILE"`,
    'wc -l < "$INPUT_DIR/data/sales.csv" | tr -d " " > "$OUTPUT_DIR/rows.txt"',
    'mkdir "$OUTPUT_DIR/Größe" && cp TASK.md "$OUTPUT_DIR/Größe/a b?.md"',
    'ln -s /etc/passwd "$OUTPUT_DIR/leak"',
    `echo '{"summary":"2 rows"}' > "$RESULT_FILE"`,
    `echo '{"inputTokens":3,"toolCalls":1}' > "$USAGE_FILE"`,
    'grep -q "T-1" task.json && grep -q "growth" run.json',
  ].join('\n');
  const { work, of, bodies, scratch, received } = await setUp(t, { inputs: { 'data/sales.csv': 'a\nb\n' } }, command);
  t.equal(await work(), true);
  t.ok(received.every((call) => call.headers.authorization === 'Bearer service'));
  t.match(bodies('pull')[0], { workerId: 'me', limit: 1, waitMs: 20_000, kinds: ['task', 'chat'] });
  const runId = runIdOf(bodies('start'));
  t.same(bodies('start'), [{ organizationId: ORGANIZATION, leaseToken: '1.secret', runId, workerId: 'me' }]);
  const fence = { organizationId: ORGANIZATION, leaseToken: '1.secret' };
  const workspaceUri = `org://${ORGANIZATION}/runs/${runId}/workspace`;
  t.same(bodies('running'), [{ ...fence, harness: 'reference-worker', model: 'none', workspaceUri }]);
  t.same(
    of('output').map((call) => [call.method, decodeURIComponent(call.path), call.body.toString().slice(0, 6)]),
    [
      ['PUT', `/internal/runs/${runId}/outputs/Größe/a b?.md`, '# T-1:'],
      ['PUT', `/internal/runs/${runId}/outputs/rows.txt`, '2\n'],
    ],
  );
  t.match(of('output')[0]?.headers, {
    'content-type': 'application/octet-stream',
    'x-organization-id': ORGANIZATION,
    'x-lease-token': '1.secret',
  });
  const commandHash = createHash('sha256').update(command).digest('hex');
  t.match(bodies('complete'), [
    {
      ...fence,
      output: {
        kind: 'task_result',
        result: { kind: 'completed', summary: '2 rows', artifacts: [{ path: 'Größe/a b?.md' }, { path: 'rows.txt' }] },
      },
      usage: { inputTokens: 3, outputTokens: 0, toolCalls: 1 },
      receipts: [{ kind: 'command', commandHash, status: 'succeeded', exitCode: 0 }],
      harness: 'reference-worker',
      workspaceUri,
      logState: 'complete',
    },
  ]);
  const entries = bodies('logs').flatMap((body) => body.entries);
  t.same(
    entries.map((entry) => entry.sequence),
    entries.map((_, index) => index + 1),
  );
  t.match(entries, [
    { label: 'Workspace ready', category: 'planning', status: 'completed' },
    { label: 'Command started', category: 'execution', status: 'running' },
    { label: 'Counting', category: 'execution', status: 'running' },
    { label: 'Counted', detail: '2 rows', category: 'verification', status: 'completed' },
    { label: 'Command ended', category: 'execution', status: 'completed' },
    { label: 'Left out leak', detail: 'a symbolic link', category: 'sync', status: 'skipped' },
    { label: 'Stored Größe/a b?.md', category: 'sync' },
    { label: 'Stored rows.txt', category: 'sync' },
  ]);
  t.same(await readdir(scratch), [], 'the folder of the run is gone');
});

t.test('what a command writes to its output is never sent', async (t) => {
  const { work, received, printed } = await setUp(t, {}, 'echo to-the-terminal; echo also-this >&2');
  t.equal(await work(), true);
  t.ok(
    printed.some((line) => line.endsWith('| to-the-terminal')) && printed.some((line) => line.endsWith('| also-this')),
  );
  t.notOk(received.some((call) => /to-the-terminal|also-this/.test(call.body.toString())));
});

t.test('a token that a command shows reaches nobody', async (t) => {
  const executionToken = 'e1'.repeat(32);
  const command = [
    'env | grep BUSINESS_RUNNER_TOKEN >> "$PROGRESS_FILE"',
    `printf '{"label":"%0190d%s","detail":"%s"}\\n' 0 "$BUSINESS_RUNNER_TOKEN" "$BUSINESS_RUNNER_TOKEN" >> "$PROGRESS_FILE"`,
    `printf '{"summary":"With %s."}' "$BUSINESS_RUNNER_TOKEN" > "$RESULT_FILE"`,
  ].join('; ');
  const { work, of, bodies, received } = await setUp(t, { executionToken }, command);
  t.equal(await work(), true);
  t.equal(bodies('complete')[0].output.result.summary, 'With [redacted].');
  const sent = of('logs').map(({ body }) => body.toString());
  t.match(sent.join(), /BUSINESS_RUNNER_TOKEN=\[redacted\]/);
  t.notMatch(sent.join(), /e1e1/, 'nor half of it, where a label is cut');
  t.notOk(received.some(({ body }) => body.includes(executionToken)));

  const failing = `printf '{"kind":"failed","code":"x","message":"%s","retryable":false}' "$BUSINESS_RUNNER_TOKEN" > "$RESULT_FILE"`;
  const failed = await setUp(t, { executionToken }, failing);
  t.equal(await failed.work(), false);
  t.match(failed.bodies('fail'), [{ error: { message: '[redacted]' } }]);
});

t.test('a failing command fails its run', async (t) => {
  const { work, bodies, of } = await setUp(t, {}, 'echo partial > "$OUTPUT_DIR/x"; exit 3');
  t.equal(await work(), false);
  t.match(bodies('fail'), [
    {
      error: { code: 'command_failed', message: 'The command ended with exit status 3', retryable: true },
      logState: 'complete',
    },
  ]);
  t.equal(of('complete').length + of('output').length, 0);
});

t.test('the command may choose another end', async (t) => {
  const waiting = await setUp(
    t,
    {},
    `echo '{"kind":"waiting","until":"2030-01-01T00:00:00Z","reason":"rates"}' > $RESULT_FILE`,
  );
  t.equal(await waiting.work(), true);
  t.same(waiting.bodies('complete')[0].output.result, {
    kind: 'waiting',
    until: '2030-01-01T00:00:00Z',
    reason: 'rates',
  });
  const acting = await setUp(t, {}, `echo '{"kind":"waiting","actionIds":["0197"],"reason":"refund"}' > $RESULT_FILE`);
  t.equal(await acting.work(), true);
  t.same(acting.bodies('complete')[0].output.result, { kind: 'waiting', actionIds: ['0197'], reason: 'refund' });
  const failed = await setUp(
    t,
    {},
    `echo '{"kind":"failed","code":"no_data","message":"Nothing to add","retryable":false}' > $RESULT_FILE; exit 1`,
  );
  t.equal(await failed.work(), false);
  t.match(failed.bodies('fail')[0].error, { code: 'no_data', message: 'Nothing to add', retryable: false });
  const broken = await setUp(t, {}, 'echo "{" > $RESULT_FILE');
  t.equal(await broken.work(), false);
  t.match(broken.bodies('fail')[0].error, { code: 'result_invalid', message: /RESULT_FILE is not valid JSON/ });
});

t.test('lost responses, 5xx and broken connections: the same call is sent again with the same body', async (t) => {
  const script: Script = {
    inputs: { 'a.txt': 'text' },
    respond: (verb, nth) =>
      nth === 1 ? 'drop' : nth === 2 && verb !== 'content' ? [503, 'service_unavailable'] : null,
  };
  const { work, of, received } = await setUp(t, script, 'cp "$INPUT_DIR/a.txt" "$OUTPUT_DIR/b.txt"');
  t.equal(await work(), true);
  for (const verb of ['start', 'running', 'inputs', 'output', 'logs', 'complete']) {
    const calls = of(verb).slice(0, 3);
    t.equal(calls.length, 3, verb);
    t.equal(new Set(calls.map((call) => call.body.toString())).size, 1, `${verb} is the same call`);
  }
  t.equal(of('fail').length, 0);
  t.equal(received.filter((call) => call.path.includes('/content')).length, 2);
});

t.test('a cancelled run is stopped and reported', async (t) => {
  const script: Script = { heartbeatIntervalMs: 50, heartbeat: (nth) => (nth >= 2 ? 'cancelling' : 'running') };
  const { work, bodies, of } = await setUp(t, script, 'echo started >> $PROGRESS_FILE; sleep 300');
  t.equal(await work(), false);
  t.match(bodies('heartbeat')[0], { waitMs: 50 }, 'it waits for the cancel');
  t.match(bodies('fail'), [{ error: { code: 'cancelled', retryable: false } }]);
  t.equal(of('complete').length + of('output').length, 0);
});

t.test('a cancelled run keeps its lease while its command takes its time to stop', async (t) => {
  const begun = path.join(await openFolder(t), 'begun');
  const script: Script = {
    heartbeatIntervalMs: 50,
    heartbeat: () => (existsSync(begun) ? 'cancelling' : 'running'),
  };
  const slow = `trap 'sleep 1; exit 1' TERM; touch '${begun}'; sleep 300 & wait`;
  const { work, bodies, of } = await setUp(t, script, slow);
  t.equal(await work(), false);
  t.ok(of('heartbeat').length > 4, `${of('heartbeat').length} heartbeats`);
  t.match(bodies('fail'), [{ error: { code: 'cancelled', retryable: false } }]);
});

t.test('a lost lease stops the command, and nothing is reported any more', async (t) => {
  const script: Script = {
    heartbeatIntervalMs: 50,
    respond: (verb) => (verb === 'heartbeat' ? [409, 'run_lease_expired'] : null),
  };
  const { work, of, printed } = await setUp(t, script, 'sleep 300');
  t.equal(await work(), false);
  t.equal(of('fail').length + of('complete').length, 0);
  t.match(printed.at(-1), /given up: lease_lost/);
});

t.test('an API that stays away for as long as the lease lasts ends the run', async (t) => {
  const script: Script = {
    heartbeatIntervalMs: 50,
    leaseMs: 2_500,
    respond: (verb) => (verb === 'heartbeat' ? 'drop' : null),
  };
  const { work, of, printed } = await setUp(t, script, 'sleep 300');
  t.equal(await work(), false);
  t.ok(of('heartbeat').length > 1, 'heartbeats were tried again');
  t.equal(of('fail').length + of('complete').length, 0);
  t.match(printed.at(-1), /given up/);
});

t.test('a heartbeat that failed once changes nothing', async (t) => {
  const gate = await openGate(t);
  const script: Script = {
    heartbeatIntervalMs: 30,
    leaseMs: 20_000,
    respond(verb, nth) {
      if (verb !== 'heartbeat') return null;
      if (nth > 2) gate.open();
      return nth === 1 ? 'drop' : null;
    },
  };
  const { work, of } = await setUp(t, script, gate.wait);
  t.equal(await work(), true);
  t.ok(of('heartbeat').length > 2);
});

t.test('a start that is refused runs nothing', async (t) => {
  const script: Script = { respond: (verb) => (verb === 'start' ? [409, 'run_lease_expired'] : null) };
  const { work, of, printed, scratch } = await setUp(t, script, 'true');
  t.equal(await work(), false);
  t.equal(of('start').length, 1);
  t.equal(of('running').length, 0);
  t.match(printed.at(-1), /not started: lease_lost/);
  t.same(await readdir(scratch), []);
});

t.test('a result that the API refuses becomes a failure, while the lease holds', async (t) => {
  const script: Script = { respond: (verb) => (verb === 'complete' ? [400, 'validation_failed'] : null) };
  const { work, bodies } = await setUp(t, script, 'true');
  t.equal(await work(), false);
  t.match(bodies('fail'), [{ error: { code: 'result_refused', message: /validation_failed/, retryable: true } }]);
});

t.test('an input that is not the announced one fails the run before the command', async (t) => {
  const inputs = { 'a.txt': 'text' };
  const script: Script = {
    inputs,
    respond(verb) {
      if (verb === 'content') inputs['a.txt'] = 'other';
      return null;
    },
  };
  const { work, bodies } = await setUp(t, script, 'echo ran > "$OUTPUT_DIR/x"');
  t.equal(await work(), false);
  t.match(bodies('fail'), [{ error: { code: 'workspace_failed', message: /a\.txt did not arrive whole/ } }]);
});

t.test('an input path that leads out of the folder fails the run', async (t) => {
  const { work, bodies } = await setUp(t, { inputs: { '../../evil': 'x' } }, 'true');
  t.equal(await work(), false);
  t.match(bodies('fail'), [{ error: { code: 'workspace_failed' } }]);
});

t.test('drain finishes what runs and takes nothing new; stop hands it back', async (t) => {
  const gate = await openGate(t);
  const draining = await setUp(t, { tasks: [{}, {}, {}] }, gate.wait, ['--concurrency', '2']);
  const working = draining.work();
  while (draining.of('running').length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  draining.drain.abort();
  gate.open();
  t.equal(await working, true);
  t.equal(draining.of('complete').length, 2);
  t.equal(draining.of('start').length, 2);

  const stopping = await setUp(t, {}, 'sleep 300', []);
  const stopped = stopping.work();
  while (stopping.of('running').length < 1) await new Promise((resolve) => setTimeout(resolve, 5));
  stopping.drain.abort();
  stopping.stop.abort();
  await stopped;
  t.match(stopping.bodies('fail'), [{ error: { code: 'worker_stopped', retryable: true } }]);
});

t.test('the worker waits for an API that is away, and ends where its token is wrong', async (t) => {
  const away = await setUp(t, { respond: (verb, nth) => (verb === 'pull' && nth < 3 ? 'drop' : null) }, 'true');
  t.equal(await away.work(), true);
  t.ok(
    away.printed.some((line) => /no response from/.test(line)) &&
      away.printed.some((line) => /reconnected to/.test(line)),
  );
  const wrong = await setUp(t, { respond: (verb) => (verb === 'pull' ? [401, 'agent_unauthorized'] : null) }, 'true');
  await t.rejects(wrong.work(), ApiError);
});

t.test('filters go along with the pull', async (t) => {
  const argv = ['--once', '--organization', ORGANIZATION, '--profile', 'growth', '--profile', 'support'];
  const { work, bodies } = await setUp(t, {}, 'true', argv);
  await work();
  t.match(bodies('pull')[0], { organizationIds: [ORGANIZATION], profileKeys: ['growth', 'support'] });
});
