import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Run } from '../../../api/runs/schema.ts';
import {
  COMPLETED,
  expectSuccess,
  type Fields,
  fingerprint,
  makeTask,
  ownerPath,
  readTask,
  refusalOf,
  runNext,
  runTask,
  sqlOf,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization, openItems } from '../../support/fixtures.ts';
import { issuePaths } from '../../support/http.ts';
import { brokenInvariants } from '../../support/invariants.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql, { maxConcurrentRuns: 50, limits: { maxConcurrentRuns: 50 } });

const pointer = (at: string, operator: string, value?: unknown) => ({
  kind: 'json_pointer',
  pointer: at,
  operator,
  ...(value === undefined ? {} : { value }),
});
const file = (path: string, ...checks: Fields[]) => ({ kind: 'output_file', path, checks });
const withCriteria = (...acceptanceCriteria: Fields[]) => ({ spec: { acceptanceCriteria } });
const report = withCriteria(file('report.json', pointer('/total', 'eq', 3)));

const getRun = async (id: string) => expectSuccess(await app.owner.get<Run>(ownerPath(org, `/runs/${id}`)));

t.test('when every check holds on the stored bytes the task is completed, and says by what', async (t) => {
  const run = await runTask(app, org, report);
  const worker = workerOf(app, run);
  const { sha256 } = expectSuccess(await worker.put('report.json', '{"total": 3.0}'), 201);
  expectSuccess(await worker.put('notes/a b.txt', 'x'), 201);
  t.same(expectSuccess(await worker.completeWith('notes/a b.txt', 'report.json')), { status: 'succeeded' });
  const task = await readTask(app, org, run.taskId);
  const uri = `org://${org.organizationId}/runs/${run.runId}/outputs`;
  const evidence = {
    kind: 'file',
    runId: run.runId,
    path: 'report.json',
    uri: `${uri}/report.json`,
    size: 14,
    sha256,
    mediaType: 'application/json',
  };
  t.match(task, { status: 'completed', phase: 'closed', state: { blockers: [], activeRunIds: [] } });
  t.ok(task.completedAt);
  t.same(task.result?.artifacts?.[1], evidence);
  t.equal(task.result?.artifacts?.[0]?.uri, `${uri}/notes/a%20b.txt`);
  t.match(task.result?.completion, {
    disposition: 'passed',
    runIds: [run.runId],
    checks: [{ criterionIndex: 0, evaluator: 'backend', status: 'passed', summary: 'report.json: its check holds' }],
  });
  t.same(task.result?.completion?.checks[0]?.evidence, [evidence]);
  t.same((await getRun(run.runId)).output, { kind: 'task_result', result: task.result });
});

t.test('a check that fails: once more with what failed, and passing then clears it', async (t) => {
  const run = await runTask(app, org, report);
  const worker = workerOf(app, run);
  expectSuccess(await worker.put('report.json', '{"total": 4}'), 201);
  for (const _ of [1, 2]) t.same(expectSuccess(await worker.completeWith('report.json')), { status: 'failed' });
  const failed = await getRun(run.runId);
  t.match(failed, {
    status: 'failed',
    error: { code: 'acceptance_failed', retryable: true },
    output: {
      result: { kind: 'completed', artifacts: [{ path: 'report.json' }], completion: { disposition: 'failed' } },
    },
  });
  t.match(await readTask(app, org, run.taskId), {
    status: 'pending',
    result: null,
    state: {
      contract: {
        failures: 1,
        runId: run.runId,
        checks: [{ criterionIndex: 0, status: 'failed', summary: /report\.json: .*\/total.* 3.* 4/ }],
      },
    },
  });
  t.same(await openItems(sql, org, run.taskId), []);
  const second = await runNext(app, org);
  t.match([second.taskId, second.attempt], [run.taskId, 1], 'a new request, with attempts of its own');
  expectSuccess(await workerOf(app, second).put('report.json', '{"total": 3}'), 201);
  expectSuccess(await workerOf(app, second).completeWith('report.json'));
  const task = await readTask(app, org, run.taskId);
  t.match(task, { status: 'completed', agentRunCount: 2, result: { completion: { completionRevision: 2 } } });
  t.notOk(task.state.contract);
});

async function failContract(taskId?: string): Promise<string> {
  const run = taskId === undefined ? await runTask(app, org, report) : await runNext(app, org);
  expectSuccess(await workerOf(app, run).put('report.json', '{}'), 201);
  t.same(expectSuccess(await workerOf(app, run).completeWith('report.json')), { status: 'failed' });
  return run.taskId;
}

t.test('failing twice blocks the task with a question, and the owner’s retry reopens it', async (t) => {
  const taskId = await failContract();
  await failContract(taskId);
  const items = await openItems(sql, org, taskId);
  t.match(items, [{ kind: 'question', purpose: 'repair', options: ['try_again', 'accept', 'cancel'] }]);
  t.equal(items.length, 1);
  t.match(await readTask(app, org, taskId), {
    status: 'blocked',
    state: { blockers: [{ kind: 'human', inboxItemId: items[0]?.['id'] }], contract: { failures: 2 } },
  });
  const retry = ownerPath(org, `/tasks/${taskId}/retry`);
  const reopened = expectSuccess(await app.owner.post<{ state: Fields }>(retry));
  t.match(reopened, { status: 'pending', state: { blockers: [] } });
  t.notOk(reopened.state['contract'], 'it starts anew');
  t.same(await openItems(sql, org, taskId), []);
  await failContract(taskId);
  t.match(await readTask(app, org, taskId), { status: 'pending', state: { contract: { failures: 1 } } });
  await app.owner.post(ownerPath(org, `/tasks/${taskId}/cancel`));
});

t.test('an artifact that was never stored is refused, and the lease stays', async (t) => {
  const run = await runTask(app, org, report);
  const worker = workerOf(app, run);
  const stored = expectSuccess(await worker.put('report.json', '{"total": 3}'), 201);
  const before = await fingerprint(app);
  const complete = (...artifacts: Fields[]) => worker.complete({ ...COMPLETED, artifacts });
  const missing = await complete({ path: 'report.json' }, { path: 'other.json' });
  t.equal(refusalOf(missing), '400 validation_failed not_stored');
  t.equal(missing.body.error.issues?.[0]?.path, 'output.result.artifacts.1.path');
  const own = `org://${org.organizationId}/runs/${run.runId}/outputs/report.json`;
  const differs: Fields[] = [
    { size: 13 },
    { sha256: '0'.repeat(64) },
    { runId: org.organizationId },
    { uri: 'file:///etc' },
    { uri: own.replace('report', 'other') },
  ];
  for (const fields of differs) {
    t.equal(refusalOf(await complete({ path: 'report.json', ...fields })), '400 validation_failed differs_from_stored');
  }
  t.match(refusalOf(await complete({ path: '../report.json' })), /^400 validation_failed/);
  t.equal(await fingerprint(app), before, 'nothing has ended');
  t.same(expectSuccess(await worker.heartbeat()), { status: 'starting' });
  const { sizeBytes: size, sha256 } = stored;
  const right = { path: 'report.json', kind: 'file', size, sha256, mediaType: 'whatever/the-worker-says', name: 'R' };
  t.same(expectSuccess(await complete(right)), { status: 'succeeded' });
  t.match((await getRun(run.runId)).output?.result.artifacts, [{ mediaType: 'application/json', name: 'R' }]);
});

/** Each criterion with what is stored, and whether it holds. */
const verdicts: readonly (readonly [string, Fields, Record<string, string>, boolean])[] = [
  ['a file that is there', file('a'), { a: '' }, true],
  ['a file that is missing', file('a'), { b: '' }, false],
  ['another case of its name', file('a'), { A: '' }, false],
  ['its media type', file('a.csv', { kind: 'media_type', anyOf: ['image/*', 'text/csv'] }), { 'a.csv': 'a,b\n' }, true],
  ['another media type', file('a.csv', { kind: 'media_type', anyOf: ['image/*'] }), { 'a.csv': 'a,b\n' }, false],
  ['a number in another spelling', file('a', pointer('/n', 'eq', 1.5)), { a: '{"n": 15e-1}' }, true],
  ['a number beyond doubles', file('a', pointer('/n', 'gt', 9007199254740991)), { a: '{"n": 9007199254740993}' }, true],
  ['a number as text', file('a', pointer('/n', 'eq', 1)), { a: '{"n": "1"}' }, false],
  ['what must not be there', file('a', pointer('/n', 'exists', false)), { a: '{}' }, true],
  ['an element', file('a', pointer('/l', 'contains', { x: 1 })), { a: '{"l": [0, {"x": 1}]}' }, true],
  [
    'two checks, one of which fails',
    file('a', pointer('/n', 'gte', 1), pointer('/n', 'lt', 1)),
    { a: '{"n": 1}' },
    false,
  ],
  ['no JSON', file('a', pointer('/n', 'exists')), { a: 'n: 1' }, false],
  ['an empty file as JSON', file('a', pointer('', 'exists')), { a: '' }, false],
];

t.test('criteria decide on the stored bytes', async (t) => {
  for (const [name, criterion, outputs, passes] of verdicts) {
    const run = await runTask(app, org, withCriteria(criterion));
    const worker = workerOf(app, run);
    for (const [path, content] of Object.entries(outputs)) expectSuccess(await worker.put(path, content), 201);
    const completed = expectSuccess(await worker.completeWith(...Object.keys(outputs)));
    t.same(completed, { status: passes ? 'succeeded' : 'failed' }, name);
    await app.owner.post(ownerPath(org, `/tasks/${run.taskId}/cancel`));
  }
});

t.test('a file that was stored but is not part of the result does not count', async (t) => {
  const run = await runTask(app, org, report);
  expectSuccess(await workerOf(app, run).put('report.json', '{"total": 3}'), 201);
  t.same(expectSuccess(await workerOf(app, run).complete()), { status: 'failed' });
  await app.owner.post(ownerPath(org, `/tasks/${run.taskId}/cancel`));
});

t.test('a criterion of any other kind decides nothing, and is kept', async (t) => {
  const display = { kind: 'reviewed_by', who: ['a', { b: null }] };
  const run = await runTask(app, org, withCriteria(display));
  t.same(expectSuccess(await workerOf(app, run).complete()), { status: 'succeeded' });
  const task = await readTask(app, org, run.taskId);
  t.same(task.spec.acceptanceCriteria, [display]);
  t.same(task.result?.completion?.checks, []);
});

t.test('bytes that were lost after they were stored do not hold what they should', async (t) => {
  const run = await runTask(app, org, report);
  const worker = workerOf(app, run);
  expectSuccess(await worker.put('report.json', '{"total": 3}'), 201);
  const { rows } = await app.database.owner.query<{ storage_key: string }>(
    'select storage_key from app.run_outputs where run_id = $1',
    [run.runId],
  );
  await app.services.storage.delete(rows[0]?.storage_key ?? '');
  t.same(expectSuccess(await worker.completeWith('report.json')), { status: 'failed' });
  await app.owner.post(ownerPath(org, `/tasks/${run.taskId}/cancel`));
});

t.test('two that complete at once end the run once', async (t) => {
  const run = await runTask(app, org, report);
  const worker = workerOf(app, run);
  expectSuccess(await worker.put('report.json', '{"total": 3}'), 201);
  const replies = await Promise.all(Array.from({ length: 5 }, () => worker.completeWith('report.json')));
  for (const reply of replies) t.same(expectSuccess(reply), { status: 'succeeded' });
  t.match(await readTask(app, org, run.taskId), {
    status: 'completed',
    result: { completion: { completionRevision: 1 } },
  });
});

t.test('complete and fail at once: one of them decides, and the other is told', async (t) => {
  for (let n = 0; n < 5; n += 1) {
    const run = await runTask(app, org);
    const worker = workerOf(app, run);
    const [completed, failed] = await Promise.all([worker.complete(), worker.fail()]);
    const won = [completed, failed].filter((reply) => reply.status === 200);
    t.equal(won.length, 1);
    const lost = completed.status === 200 ? failed : completed;
    t.equal(refusalOf(lost), '409 run_lease_expired differs');
    const { status } = await readTask(app, org, run.taskId);
    t.equal(status, completed.status === 200 ? 'completed' : 'failed');
  }
});

const wrongBodies: Readonly<Record<string, Fields>> = {
  'no output': { output: undefined },
  'a null output': { output: null },
  'another kind of output': { output: { kind: 'chat_message', result: COMPLETED } },
  'an unknown result': { output: { kind: 'task_result', result: { kind: 'done' } } },
  'no summary': { output: { kind: 'task_result', result: { kind: 'completed' } } },
  'a field of its own': { output: { kind: 'task_result', result: { ...COMPLETED, confidence: 1 } } },
  'a completion of its own': { output: { kind: 'task_result', result: { ...COMPLETED, completion: {} } } },
  'waiting without a time': { output: { kind: 'task_result', result: { kind: 'waiting', reason: 'x' } } },
  'waiting for no time': { output: { kind: 'task_result', result: { kind: 'waiting', until: 'soon', reason: 'x' } } },
  'asking nothing': { output: { kind: 'task_result', result: { kind: 'needs_input', question: '' } } },
  'a broken usage': { usage: { inputTokens: 1.5 } },
  'a negative usage': { usage: { outputTokens: -1 } },
  'an endless usage': { usage: { toolCalls: 1e300 } },
  'an unknown usage': { usage: { tokens: 1 } },
  'a receipt without its hash': { receipts: [{ kind: 'command', id: '1', status: 'completed', exitCode: 0 }] },
  'a receipt with a bad hash': {
    receipts: [{ kind: 'command', id: '1', commandHash: 'A'.repeat(64), status: 'x', exitCode: 0 }],
  },
  'another log state': { logState: 'recording' },
  'a relative place': { workspaceUri: 'runs/1' },
  'a place without a scheme': { workspaceUri: '//host/runs/1' },
  'a place with a space': { workspaceUri: 'file:///a b' },
  'a place with a user': { workspaceUri: 'ssh://root@host/runs/1' },
  'a place with a password': { workspaceUri: 'https://u:p@host/runs/1' },
  'a place with a key': { workspaceUri: `https://host/runs/1?api_key=${'0'.repeat(32)}` },
  'an artifact of another kind': {
    output: { kind: 'task_result', result: { ...COMPLETED, artifacts: [{ kind: 'folder', path: 'a' }] } },
  },
  'an artifact whose run is no id': {
    output: { kind: 'task_result', result: { ...COMPLETED, artifacts: [{ runId: 'mine', path: 'a' }] } },
  },
  'a place of 2,001 characters': { workspaceUri: `file:///${'a'.repeat(1993)}` },
  'an unknown field': { status: 'succeeded' },
};

t.test('a run waits for 1 to 50 actions, or until a time', async (t) => {
  const run = await runTask(app, org);
  const worker = workerOf(app, run);
  const wait = async (fields: Fields) => {
    const result = { kind: 'waiting', reason: 'x', ...fields };
    const reply = await worker.post('complete', { output: { kind: 'task_result', result } });
    return [refusalOf(reply), ...issuePaths(reply)];
  };
  const ids = (count: number) => Array.from({ length: count }, () => randomUUID());
  const until = '2999-01-01T00:00:00Z';
  t.same(await wait({ actionIds: [] }), ['400 validation_failed too_small', 'output.result.actionIds']);
  t.same(await wait({ actionIds: ids(51) }), ['400 validation_failed too_big', 'output.result.actionIds']);
  t.same(await wait({ actionIds: ids(1), until }), ['400 validation_failed custom', 'output.result.until']);
  t.same(await wait({}), ['400 validation_failed custom', 'output.result.until']);
  t.same(await wait({ actionIds: ids(50) }), ['400 validation_failed unknown_action', 'output.result.actionIds']);
  expectSuccess(await worker.complete({ kind: 'waiting', reason: 'x', until }));
});

t.test('a malformed result is refused, and the lease stays', async (t) => {
  const run = await runTask(app, org);
  const worker = workerOf(app, run);
  const before = await fingerprint(app);
  for (const [name, fields] of Object.entries(wrongBodies)) {
    const reply = await worker.post('complete', { output: { kind: 'task_result', result: COMPLETED }, ...fields });
    t.match(refusalOf(reply), /^400 validation_failed/, name);
  }
  const wrongErrors: Fields[] = [
    { code: '' },
    { code: 7 },
    { message: undefined },
    { retryable: 'yes' },
    { stack: 'x' },
  ];
  for (const fields of wrongErrors) t.match(refusalOf(await worker.fail(fields)), /^400 validation_failed/);
  t.equal(await fingerprint(app), before);
  t.same(expectSuccess(await worker.complete()), { status: 'succeeded' });
});

t.test('prerequisites that are completed let their dependents go', async (t) => {
  const first = await runTask(app, org);
  const second = await makeTask(app, org, { dependsOn: [first.taskId] });
  t.equal(second.status, 'blocked');
  expectSuccess(await workerOf(app, first).complete());
  t.match(await readTask(app, org, second.id), { status: 'pending', state: { blockers: [] } });
});

t.test('everything is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
