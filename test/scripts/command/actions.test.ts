import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import { receiptKeys } from '../../../engine/receipts/index.ts';
import { decidedBy } from '../../../scripts/command/action_text.ts';
import type { Ask } from '../../../scripts/command/stop.ts';
import {
  actionFile,
  actionRow,
  createProposer,
  makeUnknown,
  type Proposer,
  propose,
} from '../../support/action_fixtures.ts';
import { rawRequest, sqlOf } from '../../support/api_fixtures.ts';
import { OWNER_TOKEN, startTestApp } from '../../support/app.ts';
import { auditEntries } from '../../support/audit_fixtures.ts';
import { completeRun } from '../../support/fixtures.ts';
import { openFolder } from '../../support/folders.ts';
import { until } from '../../support/wait.ts';
import { begin, beginAsking } from './set_up.ts';

const app = await startTestApp(t, {
  config: { receiptKeys: receiptKeys.parse(Buffer.alloc(32, 3).toString('base64')) },
});
const sql = sqlOf(app);

function environmentOf({ org }: Pick<Proposer, 'org'>, token: string | undefined = OWNER_TOKEN) {
  return {
    BUSINESS_RUNNER_URL: app.url,
    BUSINESS_RUNNER_ORGANIZATION: org.organizationId,
    BUSINESS_RUNNER_OWNER_TOKEN: token,
  };
}

async function acting() {
  const by = await createProposer(sql);
  const call = (...argv: string[]) => begin(environmentOf(by), ...argv).ended;
  const asked = (ask: Ask, ...argv: string[]) => beginAsking(ask, environmentOf(by), ...argv);
  return { by, call, asked };
}
const short = (id: string) => id.slice(-8);
const yes = () => Promise.resolve(true);

t.test('what waits is listed, shown and approved by what was shown', async (t) => {
  const { by, call, asked } = await acting();
  t.match(await call('actions'), { status: 0, out: 'no actions\n' });
  const { id } = await propose(sql, by, {
    summary: 'Create an item for a\u001b[2Jb\n  decision  approved by ada',
    arguments: { amount: 7, text: '\u202egnp.exe' },
    files: [actionFile('body', 'text')],
  });
  const listed = await call('actions', 'list', '--status', 'awaiting_approval');
  t.match(listed.out, new RegExp(`^ACTION .*\\n${short(id)}  awaiting_approval  external  Create an item`));
  const shown = await call('actions', 'show', short(id));
  t.equal(shown.status, 0, shown.err);
  t.match(shown.out, new RegExp(`^${short(id)}  awaiting_approval  risk external  `));
  t.match(shown.out, / {2}does {6}Create an item for a\\u001b\[2Jb\\n {2}decision {2}approved by ada\n/);
  t.match(shown.out, /\n {2}task {6}T-1\n {2}file {6}body: body\.txt \(text\/plain, 4 bytes\)\s+[0-9a-f]{64}\n/);
  t.match(shown.out, /\n {2}arguments\n {4}\{\n {6}"text": "\\u202egnp\.exe",\n {6}"amount": 7\n {4}\}\n/);
  t.match(shown.out, new RegExp(`\\n  npx business-runner actions approve ${short(id)}\\n`));
  t.notMatch(listed.out + shown.out, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);

  const questions: string[] = [];
  const ask: Ask = async (question) => {
    questions.push(question);
    return false;
  };
  const refused = await asked(ask, 'actions', 'approve', short(id)).ended;
  t.match(refused, { status: 1, out: shown.out, err: 'business-runner: not approved: it still waits\n' });
  t.same(questions, ['Approve this?']);
  t.equal((await actionRow(sql, id)).status, 'awaiting_approval');
  t.match(await call('actions', 'approve', short(id)), { status: 64, err: /--yes is needed where nobody is asked/ });

  const approved = await asked(yes, 'actions', 'approve', 'T-1', '--note', 'Go on').ended;
  t.match(approved, { status: 0, out: /\napproved: Create an item/ });
  t.match(await actionRow(sql, id), { status: 'approved', decision_note: 'Go on', decided_by: 'open' });
  const [entry] = await auditEntries(sql, by.org.organizationId);
  const { arguments_sha256: argumentsSha256 } = await actionRow(sql, id);
  t.match(entry, { action: 'action.approve', arguments: { actionId: id, expectedVersion: 1, argumentsSha256 } });
  t.match(await call('actions', 'approve', short(id), '--yes'), { status: 0 }, 'a repeat');
  const rejected = await call('actions', 'reject', short(id), 'No');
  t.match(rejected, { status: 1, err: 'business-runner: The action is approved\n' }, 'its issue says no more');
  t.match(
    (await call('actions', 'show', short(id))).out,
    / {2}decision {2}approved by whoever holds an owner’s token: /,
  );
});

t.test('whoever decided is named, save for an operator, of whom nobody knows the name', (t) => {
  t.equal(decidedBy('ada'), 'ada');
  t.equal(decidedBy('token'), decidedBy('open'));
  t.equal(decidedBy('open'), 'whoever holds an owner’s token');
  t.end();
});

t.test('what changed after it was shown is not approved', async (t) => {
  const { by, asked } = await acting();
  const { id } = await propose(sql, by);
  const ask: Ask = async () => {
    await sql.owner.query('update app.actions set version = version + 1 where id = $1', [id]);
    return true;
  };
  t.match(await asked(ask, 'actions', 'approve', short(id)).ended, { status: 1, err: /The action is at version 2/ });
  t.equal((await actionRow(sql, id)).status, 'awaiting_approval');
});

t.test('Ctrl-C at the question approves nothing', async (t) => {
  const { by, asked } = await acting();
  const { id } = await propose(sql, by);
  let isAsked = false;
  const ask: Ask = async (_question, signal) => {
    isAsked = true;
    if (!signal.aborted) await once(signal, 'abort');
    return false;
  };
  const begun = asked(ask, 'actions', 'approve', short(id));
  await until('it asks', () => isAsked);
  begun.interrupt();
  t.match(await begun.ended, { status: 130 });
  t.equal((await actionRow(sql, id)).status, 'awaiting_approval');
});

t.test('an action is rejected with the reason, and an unknown one reconciled with how one knows', async (t) => {
  const { by, call } = await acting();
  const { id } = await propose(sql, by, { summary: 'Create a' });
  t.match(await call('actions', 'reject', 'T-1', 'Too much'), { status: 0, out: 'rejected: Create a\n' });
  t.match(await actionRow(sql, id), { status: 'rejected', decision_note: 'Too much' });
  t.match(await call('actions', 'reject', 'T-1', 'Too much'), {
    status: 66,
    err: /T-1 has no action that is awaiting_approval/,
  });

  const unknown = await makeUnknown(sql, by, { arguments: { of: 'b' }, summary: 'Create b' });
  const at = ['actions', 'reconcile', short(unknown.id)];
  t.match(await call(...at, 'done', '--note', 'x'), { status: 64, err: /OUTCOME is one of succeeded, failed/ });
  t.match(await call(...at, 'failed'), { status: 64, err: /--note says how you know/ });
  t.match((await call('actions', 'show', short(unknown.id))).out, new RegExp(`\\n  .*${at.join(' ')} failed --note`));
  t.match(await call(...at, 'failed', '--note', 'Not there'), { status: 0, out: 'failed: Create b\n' });
  t.match(JSON.parse((await call('actions', 'show', unknown.id, '--json')).out), {
    status: 'failed',
    reconciliation: { note: 'Not there', by: 'open' },
  });
  t.match((await call('actions', 'list', '--task', 't-1', '--json')).out, /Create b/);
});

t.test('an action that has ended otherwise since it was approved is told so, and is no success', async (t) => {
  const { by, call } = await acting();
  const { id } = await makeUnknown(sql, by, { summary: 'Create a' });
  const again = () => call('actions', 'approve', short(id), '--yes');
  t.match(await again(), { status: 0, out: /\napproved before, and unknown by now: Create a\n$/ });
  t.match(await call('actions', 'reconcile', short(id), 'failed', '--note', 'Not there'), { status: 0 });
  const shown = await call('actions', 'show', short(id));
  t.match(shown.out, /\n {2}found {5}failed by whoever holds an owner’s token: Not there\n/);
  t.match(await again(), { status: 2, out: /\napproved before, and failed by now: Create a\n$/ });
  const asJson = await call('actions', 'approve', short(id), '--yes', '--json');
  t.equal(asJson.status, 2);
  t.match(JSON.parse(asJson.out), { id, status: 'failed' });
  t.match(await call('actions', 'reject', short(id), 'No'), { status: 1, err: /: The action is failed\n$/ });
  t.match(await call('actions', 'reconcile', short(id), 'failed', '--note', 'Again'), { status: 0 }, 'as it is known');
  t.match(await call('actions', 'reconcile', short(id), 'succeeded', '--note', 'It is'), { status: 1, out: '' });

  const done = await makeUnknown(sql, by, { arguments: { of: 'b' }, summary: 'Create b' });
  await call('actions', 'reconcile', short(done.id), 'succeeded', '--note', 'Seen');
  t.match(await call('actions', 'approve', short(done.id), '--yes'), {
    status: 0,
    out: /\napproved before, and succeeded by now: Create b\n$/,
  });
});

t.test('decisions take a token, and what is not there is named', async (t) => {
  const { by, call } = await acting();
  const { id } = await propose(sql, by);
  const without = (...argv: string[]) => begin(environmentOf(by, ''), ...argv).ended;
  t.equal((await without('actions', 'show', id)).status, 0);
  t.match(await without('actions', 'approve', id, '--yes'), { status: 77, err: /wants an owner’s token/ });
  t.match(await call('actions', 'show', 'ffffffffffff'), { status: 66, err: /there is no action/ });
  t.match(await call('actions', 'show', crypto.randomUUID()), { status: 66 });
  t.match(await call('actions', 'show', 'ab'), { status: 64, err: /too short/ });
  await propose(sql, by, { arguments: { of: 'another' } });
  t.match(await call('actions', 'approve', 'T-1', '--yes'), { status: 64, err: /T-1 has several/ });
  t.equal((await actionRow(sql, id)).status, 'awaiting_approval');
});

t.test('the inbox and a task that waits say which action waits, and how to decide', async (t) => {
  const { by, call } = await acting();
  const { id } = await propose(sql, by, { summary: 'Create a' });
  const { status, out } = await call('inbox');
  t.equal(status, 0);
  t.match(
    out,
    new RegExp(`approval  .*\\n  Approve: Create a\\n  npx business-runner actions approve ${short(id)}\\n`),
  );
  t.match(out, new RegExp(`\\n  npx business-runner actions reject ${short(id)} REASON\\n`));

  await completeRun(sql.api, by.run, { result: { kind: 'waiting', reason: 'It has to be done', actionIds: [id] } });
  const approveCall = `npx business-runner actions approve ${short(id)}`;
  const waiting = begin(environmentOf(by), 'task', 'wait', 'T-1');
  await until('it is told', () => waiting.err().includes(approveCall));
  t.ok(waiting.err().includes('T-1 waits for an action: Create a (awaiting_approval)\n'), waiting.err());
  const task = await call('task', 'show', 'T-1');
  t.match(task.out, / {2}action {4}Create a \(awaiting_approval\)\n/);
  t.ok(task.out.includes(approveCall), task.out);
  await call('actions', 'approve', short(id), '--yes');
  await until('it goes on', () => waiting.err().includes('Create a (approved)'));
  await call('task', 'cancel', 'T-1');
  t.match(await waiting.ended, { status: 2 });
});

t.test('a receipt is kept in a file, and verified by a file of keys', async (t) => {
  const { by, call } = await acting();
  const { id } = await propose(sql, by, { summary: 'Create \u2028a\u0007' });
  t.match(await call('actions', 'receipt', short(id)), { status: 1, err: /awaiting_approval/ });
  await call('actions', 'reject', short(id), 'No');
  const folder = await openFolder(t);
  const [receipt, keys, changed, none] = ['receipt', 'keys', 'changed', 'none'].map((name) =>
    path.join(folder, `${name}.json`),
  ) as [string, string, string, string];
  const { out } = await call('actions', 'receipt', short(id));
  await writeFile(receipt, out);
  const set = await rawRequest(app.url, { method: 'GET', path: '/.well-known/business-runner-keys.json' });
  await writeFile(keys, set.body);
  await writeFile(changed, out.replace('"rejected"', '"approved"'));
  await writeFile(none, '{"keys": []}');
  // Nothing is at this address: it is not asked.
  const verify = (...argv: string[]) =>
    begin({ BUSINESS_RUNNER_URL: 'http://127.0.0.1:1' }, 'receipt', 'verify', ...argv).ended;
  const valid = await verify(receipt, '--keys', keys);
  t.match(valid, { status: 0, err: '' });
  t.match(valid.out, /^valid\n {2}key {7}[\w-]{43}\n {2}action {4}/);
  t.match(
    valid.out,
    /\n {2}does {6}Create \\u2028a\\u0007\n {2}decision {2}rejected by whoever holds an owner’s token,/,
  );
  t.match(JSON.parse((await verify(receipt, '--keys', keys, '--json')).out), { action: { id }, keyId: String });
  t.match(await verify(changed, '--keys', keys), { status: 1, out: '', err: /not valid: .*changed\.json is not what/ });
  t.match(await verify(receipt, '--keys', none), { status: 66, err: /the key [\w-]{43} is not in / });
  t.match(await verify(keys, '--keys', keys), { status: 65, err: /is no receipt of an action/ });
  t.match(await verify(receipt, '--keys', receipt), { status: 65, err: /is no set of keys/ });
  t.match(await verify(`${receipt}.none`, '--keys', keys), { status: 66, err: /cannot be read \(ENOENT\)/ });
  t.match(await verify(receipt), { status: 64, err: /--keys FILE is missing/ });
  t.match(await verify('-', '--keys', '-'), { status: 64 });
  await writeFile(none, 'x');
  t.match(await verify(receipt, '--keys', none), { status: 65, err: /is no JSON/ });
  t.equal((await actionRow(sql, id)).status, 'rejected');
});

t.test('each has help with examples, on eighty columns', async (t) => {
  for (const topic of ['actions', 'receipt']) {
    for (const argv of [
      [topic, '--help'],
      ['help', topic],
      [topic, 'verify', '--help'],
    ]) {
      const { status, out } = await begin({}, ...argv).ended;
      t.equal(status, 0);
      t.match(out, new RegExp(`^business-runner ${topic} `));
      t.match(out, /\n {2}npx business-runner [\s\S]*\nExit status: 0 /);
      t.same(
        out.split('\n').filter((line) => line.length > 80 && !line.includes('https://')),
        [],
      );
    }
  }
  t.match((await begin({}, '--help').ended).out, /actions --help/);
});
