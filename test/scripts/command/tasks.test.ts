import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import { createOutput } from '../../../scripts/command/output.ts';
import { runSchema, taskSchema } from '../../../scripts/command/schemas.ts';
import { printAnswers } from '../../../scripts/command/task_text.ts';
import { until } from '../../support/wait.ts';
import { setUp, startWithCatalog } from './set_up.ts';

// Commands of workers are processes, and a machine that is busy takes its time.
t.setTimeout(180_000);
const app = await startWithCatalog(t);

t.test('a task is created, followed and shown with its result', async (test) => {
  const { call, worker, slug } = await setUp(test, app);
  test.match((await call('org', 'list', '--limit', '500')).out, new RegExp(`^${slug.slice(0, 9)}.*Lamp Studio`, 'm'));
  worker('echo "Five, seven, five" > "$OUTPUT_DIR/haiku.md"; echo "Counting" >> "$PROGRESS_FILE"');
  const { status, out, err } = await call('task', 'create', 'Write a haiku', '--expect', 'haiku.md', '--wait');
  test.equal(status, 0, err);
  for (const line of ['T-1 created: Write a haiku', 'run 1 started by ', '  Counting', 'T-1 is completed']) {
    test.ok(err.includes(`${line}`), `${line} in ${err}`);
  }
  test.match(out, /^T-1 {2}Write a haiku\n {2}status {4}completed\n/);
  test.match(out, / {2}check {5}passed: haiku\.md: it is stored\n/);
  test.match(out, / {2}file {6}haiku\.md \(text\/markdown, 18 bytes\)\n/);
  test.match(out, /\nhaiku\.md:\n {4}Five, seven, five\n$/);
  const [link = ''] = out.match(/http:\S+/) ?? [];
  test.equal(await (await fetch(link)).text(), 'Five, seven, five\n');
  test.equal((await call('task', 'show', 't-1')).out, out);
  const logs = await call('task', 'logs', 'T-1');
  test.match(logs.out, /^run 1 succeeded \(.*, execute, .*\)\n(.*\n)* {2}\d\d:\d\d:\d\d {2}Counting\n/);
});

t.test('a task that fails says why, and is tried again', async (test) => {
  const { call, worker, folder } = await setUp(test, app);
  const spec = path.join(folder, 'spec.json');
  await writeFile(spec, '{"budget": {"maxAttemptsPerPhase": 1}}');
  const failing = worker(
    `echo '{"kind":"failed","code":"no_paper","message":"No paper","retryable":false}' > $RESULT_FILE`,
  );
  const failed = await call('task', 'create', 'Print', '--spec', spec, '--objective', 'On paper', '--wait');
  test.equal(failed.status, 2, failed.err);
  test.match(failed.err, /run 1 failed: No paper\nT-1 is failed\n/);
  test.match(failed.out, / {2}status {4}failed\n.* {2}why {7}No paper\n/s);
  test.match(failed.out, / {2}run 1 {5}failed: No paper\n/);
  test.match((await call('task', 'logs', 'T-1')).out, /^run 1 failed: No paper \(/);
  const inbox = (await call('inbox')).out;
  test.match(
    inbox,
    /retry T-1[\s\S]*\n {2}npx business-runner task retry T-1\n {2}npx business-runner inbox acknowledge \w+\n$/,
  );
  const [, item = ''] = /inbox acknowledge (\w+)\n$/.exec(inbox) ?? [];
  test.match(await call('inbox', 'acknowledge', item), { status: 0, out: /^acknowledged: .*\n$/ });
  test.match((await call('inbox')).out, 'nothing waits for you');
  test.match(await call('inbox', 'acknowledge', item), { status: 66, err: /there is no open inbox item/ });
  test.match(JSON.parse((await call('task', 'show', 'T-1', '--json')).out), {
    spec: { objective: 'On paper', budget: { maxAttemptsPerPhase: 1 } },
  });
  const told = / T-1 {2}attempt 1 of 1, not tried again: npx business-runner task retry T-1 --org /;
  await until('the worker says so too', () => failing.lines.some((line) => told.test(` ${line}`)));
  await failing.end();
  worker('true');
  const again = await call('task', 'retry', 'T-1', '--wait', '--json');
  test.equal(again.status, 0, again.err);
  test.match(JSON.parse(again.out), { identifier: 'T-1', status: 'completed' });
  test.equal(again.err, '', 'with --json nothing but the document');
});

t.test('what a failed command said last is shown once in the logs', async (test) => {
  const { call, worker, folder } = await setUp(test, app);
  const spec = path.join(folder, 'spec.json');
  await writeFile(spec, '{"budget": {"maxAttemptsPerPhase": 1}}');
  worker('echo "no such ledger" >&2; echo "at all" >&2; exit 3');
  test.match(await call('task', 'create', 'Add up', '--spec', spec, '--wait'), { status: 2 });
  const { out } = await call('task', 'logs', 'T-1');
  test.match(out, /^run 1 failed: The command ended with exit status 3 \(.*\n {4}no such ledger\n {4}at all\n/);
  test.equal(out.split('no such ledger').length, 2, out);
});

t.test('a refused result names its check, and Ctrl-C leaves the task to its agents', async (test) => {
  const { begin, worker } = await setUp(test, app);
  worker('echo "{\\"lamps\\": 0}" > "$OUTPUT_DIR/report.json"');
  const waiting = begin('task', 'create', 'Count', '--expect', 'report.json /lamps gt 0', '--wait');
  await until('it asks', () => waiting.err().includes('npx business-runner inbox respond T-1 try_again\n'));
  waiting.interrupt();
  const { status, err } = await waiting.ended;
  test.equal(status, 130);
  test.match(err, /run 1 failed: its result was refused: report\.json: expected \/lamps/);
  test.match(err, /T-1 asks: The result was refused twice: Count\n {2}report\.json: expected .*\n {2}- try_again\n/);
  test.match(err, /business-runner: T-1 continues: npx business-runner task wait T-1\n$/);
});

t.test('a question is shown where it is waited for and in the inbox, and answered there', async (test) => {
  const { call, begin, worker } = await setUp(test, app);
  const question = '{"kind":"needs_input","question":"Who is it for?","options":["the team","our customers"]}';
  worker(`grep -q 'our customers' task.json && exit 0; echo '${question}' > $RESULT_FILE`);
  const waiting = begin('task', 'create', 'A letter', '--wait');
  const hint = "npx business-runner inbox respond T-1 'the team'";
  await until('it asks', () => waiting.err().includes(hint));
  test.ok(waiting.err().includes('T-1 asks: Who is it for?\n  - the team\n  - our customers\n'));
  const inbox = await call('inbox');
  const [, id = ''] = /^([0-9a-f]{8}) {2}T-1 {2}question {2}/.exec(inbox.out) ?? [];
  test.ok(
    inbox.out.includes(
      `Who is it for?\n  - the team\n  - our customers\n  npx business-runner inbox respond ${id} 'the team'\n`,
    ),
    inbox.out,
  );
  test.match(await call('inbox', 'respond', id, 'our customers'), { status: 0, out: /^responded: / });
  test.match(await waiting.ended, { status: 0 });
  const logs = await call('task', 'logs', 'T-1');
  test.match(
    logs.out,
    /\n {2}\d\d:\d\d:\d\d {2}Asked: Who is it for\?\n {2}[\d:]{8} {2}Response: our customers\nrun 2 /,
  );
  test.match((await call('inbox')).out, 'nothing waits for you');
  test.match(await call('inbox', 'respond', 'T-1', 'late'), { status: 66, err: /T-1 has no open question/ });
  test.match(await call('inbox', 'respond', id, 'late'), { status: 66, err: /there is no open inbox item/ });
  test.match(JSON.parse((await call('inbox', '--status', 'responded', '--json')).out), [{ response: 'our customers' }]);
});

t.test('the logs say what became of an action, which nobody was asked about', (test) => {
  const at = '2026-05-01T12:00:00.000Z';
  const answer = { title: 'Create {"amount":1}', question: 'What became of the action?', respondedAt: at };
  const answers = [
    { ...answer, purpose: 'action', actionId: 'a', response: 'succeeded' },
    { ...answer, purpose: 'needs_input', question: 'For whom?', response: 'Ann' },
  ];
  const task = taskSchema.parse({
    ...{
      id: 'i',
      identifier: 'T-1',
      kind: 'task',
      title: 'Bill',
      status: 'completed',
      agentRunCount: 2,
      createdAt: at,
    },
    ...{ state: { blockers: [], answers }, result: null },
  });
  const run = runSchema.parse({
    ...{ id: 'r', mode: 'execute', status: 'succeeded', agentProfile: { key: 'operator', name: 'Operator' } },
    ...{ error: null, output: null, startedAt: at, finishedAt: at },
  });
  let printed = '';
  const out = (text: string) => {
    printed += text;
  };
  const asItIs = (_: unknown, text: string) => text;
  const streams = { out, err: out, columns: 80, styleOut: asItIs, styleErr: asItIs };
  printAnswers(createOutput(false, streams), task, run, undefined);
  test.match(
    printed,
    /^ {2}[\d:]{8} {2}Action succeeded: Create \{"amount":1\}\n {2}[\d:]{8} {2}Response to "For whom\?": Ann\n$/,
  );
  test.end();
});

t.test('the list, a cancel, and what a task waits for', async (test) => {
  const { call } = await setUp(test, app);
  test.match((await call('task', 'list')).out, 'no tasks: npx business-runner task create TITLE\n');
  test.match(await call('task', 'create', 'First', '--priority', '5', '--profile', 'growth'), {
    status: 0,
    out: 'T-1\n',
  });
  const second = await call('task', 'create', 'Second', '--depends-on', 'T-1', '--initiative', '--json');
  test.match(JSON.parse(second.out), { identifier: 'I-1', kind: 'initiative', status: 'blocked' });
  const long = 'A title that is longer than what is left of a line of eighty columns on a terminal';
  await call('task', 'create', long);
  const { out } = await call('task', 'list');
  const lines = out.trimEnd().split('\n');
  test.equal(lines.length, 4);
  test.ok(lines.every((line) => line.length <= 80));
  test.match(lines[1], /^T-2 {3}pending {2}A title that .*… +0 {2}\d{4}-\d\d-\d\d \d\d:\d\d$/);
  test.match(JSON.parse((await call('task', 'list', '--status', 'blocked', '--json')).out), [{ identifier: 'I-1' }]);
  test.equal(JSON.parse((await call('task', 'list', '--limit', '2', '--json')).out).length, 2);
  test.match((await call('task', 'show', 'I-1')).out, /why {7}.*T-1/);
  const unstarted = await call('task', 'logs', 'T-1');
  test.match(unstarted.out, /^no run of T-1 has started: T-1 is ready since \d{4}-\d\d-\d\d \d\d:\d\d, and no worker/);
  test.match(unstarted.out, /\nstart one: npm run worker -- --exec 'COMMAND'\n$/);
  test.match(await call('task', 'cancel', 'T-1'), { status: 0, out: 'T-1 is cancelled\n' });
  test.match(await call('task', 'wait', 'T-1'), { status: 2, err: 'T-1 is cancelled' });
});

t.test('inputs are files of the caller, and what is no text is told', async (test) => {
  const { call, folder } = await setUp(test, app);
  const text = path.join(folder, 'sales.csv');
  const bytes = path.join(folder, 'image.png');
  await writeFile(text, 'a,b\n');
  await writeFile(bytes, Buffer.from([0x89, 0xff, 0]));
  const created = await call('task', 'create', 'Read', '--input', text, '--json');
  test.match(JSON.parse(created.out).spec.inputs, [{ kind: 'inline', path: 'sales.csv', text: 'a,b\n' }]);
  test.match(await call('task', 'create', 'Read', '--input', bytes), { status: 64, err: /not .*image\.png: PUT it/ });
  test.match(await call('task', 'create', 'Read', '--input', path.join(folder, 'none')), { status: 64, err: /ENOENT/ });
});

t.test('what a stranger wrote moves no terminal', async (test) => {
  const { call, worker } = await setUp(test, app);
  worker('printf "\\033]0;title\\007\\033[2J\\n" > "$OUTPUT_DIR/a.txt"');
  const { status, out, err } = await call('task', 'create', 'Clear\u001b[2J the \u202escreen', '--wait');
  test.equal(status, 0, err);
  test.match(out, /Clear\\u001b\[2J the \\u202escreen/);
  test.match(out, /\n {4}\\u001b\]0;title\\u0007\\u001b\[2J\n/);
  for (const text of [out, err, (await call('task', 'list')).out, (await call('task', 'show', 'T-1', '--json')).out]) {
    test.notMatch(text, /[^\P{Cc}\n]|[\u202a-\u202e]/u);
  }
});

t.test('what it says to call next names the same organization', async (test) => {
  const { call, organizationId } = await setUp(test, app);
  const { err } = await call('task', 'create', 'Print', '--org', organizationId);
  test.equal(err, `created; npx business-runner task wait T-1 --org ${organizationId} follows it\n`);
});
