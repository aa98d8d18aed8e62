import { randomUUID } from 'node:crypto';
import { appendFile, mkdtemp, rm, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { acceptanceEvaluator, outputUri, type RecordedOutput } from '../../../engine/acceptance/index.ts';
import { jsonJudge, judgeBudget } from '../../../engine/acceptance/thread.ts';
import { openStorage, receiveFile, runOutputKey } from '../../../engine/storage/index.ts';

const organizationId = randomUUID();
const runId = randomUUID();

async function setUp(t: Test) {
  const root = await mkdtemp(path.join(tmpdir(), 'acceptance-test-'));
  t.teardown(() => rm(root, { recursive: true, force: true }));
  const storage = openStorage(pathToFileURL(root).href);
  const outputs: RecordedOutput[] = [];
  const store = async (fileName: string, content: string | Uint8Array) => {
    const storageKey = runOutputKey(organizationId, runId);
    const stored = await receiveFile(storage, storageKey, Readable.from([Buffer.from(content)]), { fileName });
    outputs.push({ path: fileName, storageKey, ...stored });
    return path.join(root, storageKey);
  };
  const evaluate = acceptanceEvaluator({ storage });
  const judge = (...criteria: unknown[]) => evaluate({ organizationId, runId, criteria, outputs });
  const json = async (pointer: string, operator: string, value?: unknown, at = 'report.json') => {
    const check = { kind: 'json_pointer', pointer, operator, ...(value === undefined ? {} : { value }) };
    const [result] = await judge({ kind: 'output_file', path: at, checks: [check] });
    return result;
  };
  return { store, judge, json, storage, outputs, root };
}

t.test('a check names its criterion, status and evidence', async (t) => {
  const { store, judge, outputs } = await setUp(t);
  await store('Größe/report 1.json', '{"total": 12.5}');
  const criterion = {
    kind: 'output_file',
    path: 'Größe/report 1.json',
    checks: [
      { kind: 'media_type', anyOf: ['text/csv', 'application/json'] },
      { kind: 'json_pointer', pointer: '/total', operator: 'eq', value: 12.5 },
    ],
  };
  const { size, sha256, mediaType, path } = outputs[0] as RecordedOutput;
  t.strictSame(await judge({ kind: 'taste', text: 'nice' }, criterion), [
    {
      criterionIndex: 1,
      evaluator: 'backend',
      status: 'passed',
      summary: 'Größe/report 1.json: all 2 checks hold',
      evidence: [
        {
          kind: 'file',
          runId,
          path,
          uri: `org://${organizationId}/runs/${runId}/outputs/Gr%C3%B6%C3%9Fe/report%201.json`,
          size,
          sha256,
          mediaType,
        },
      ],
    },
  ]);
  t.equal(mediaType, 'application/json');
  t.equal(outputUri('o', 'r', 'a/b c'), 'org://o/runs/r/outputs/a/b%20c');
});

t.test('criteria of other kinds yield no check', async (t) => {
  const { judge } = await setUp(t);
  t.same(await judge(), []);
  t.same(await judge({ kind: 'taste' }, { kind: 'human', checks: [] }, null, 'text'), []);
});

t.test('an output that was never stored fails and says what there is', async (t) => {
  const { store, judge } = await setUp(t);
  const criterion = { kind: 'output_file', path: 'report.json', checks: [] };
  t.match(await judge(criterion), [
    { status: 'failed', summary: 'report.json: no such output; the run stored no files', evidence: [] },
  ]);
  await store('Report.json', '{}');
  t.match(await judge(criterion), [{ status: 'failed', summary: /no such output; the run stored Report\.json/ }]);
  t.match(await judge({ kind: 'output_file', path: 'Report.json' }), [
    { status: 'passed', summary: 'Report.json: it is stored' },
  ]);
});

t.test('media types are those of the bytes', async (t) => {
  const { store, judge } = await setUp(t);
  await store('picture.png', 'not a picture');
  await store('table.csv', 'a,b\n');
  const of = async (path: string, ...anyOf: string[]) => {
    const [check] = await judge({ kind: 'output_file', path, checks: [{ kind: 'media_type', anyOf }] });
    return [check?.status, check?.summary];
  };
  t.same(await of('picture.png', 'image/png'), [
    'failed',
    'picture.png: expected media type image/png, found application/octet-stream',
  ]);
  t.same((await of('table.csv', 'TEXT/CSV'))[0], 'passed');
  t.same((await of('table.csv', 'text/*'))[0], 'passed');
  t.same((await of('table.csv', 'image/*', 'application/json'))[0], 'failed');
});

t.test('every operator, where it holds and where it does not', async (t) => {
  const { store, json } = await setUp(t);
  const document = '{"n": 10, "s": "mango", "list": [1, "two", {"three": 3}], "object": {"key": null}, "yes": true}';
  await store('report.json', document);
  const cases: [string, string, unknown, 'passed' | 'failed'][] = [
    ['/n', 'eq', 10, 'passed'],
    ['/n', 'eq', 11, 'failed'],
    ['/n', 'eq', '10', 'failed'],
    ['/list', 'eq', [1, 'two', { three: 3 }], 'passed'],
    ['/list/2', 'eq', { three: 4 }, 'failed'],
    ['/object/key', 'eq', null, 'passed'],
    ['', 'eq', JSON.parse(document), 'passed'],
    ['/n', 'ne', 11, 'passed'],
    ['/n', 'ne', 10, 'failed'],
    ['/nothing', 'ne', 10, 'failed'],
    ['/n', 'gt', 9.99, 'passed'],
    ['/n', 'gt', 10, 'failed'],
    ['/n', 'gt', '9', 'failed'],
    ['/s', 'gt', 'apple', 'passed'],
    ['/n', 'gte', 10, 'passed'],
    ['/n', 'gte', 10.01, 'failed'],
    ['/yes', 'gte', 0, 'failed'],
    ['/n', 'lt', 11, 'passed'],
    ['/n', 'lt', 10, 'failed'],
    ['/s', 'lt', 1, 'failed'],
    ['/list', 'lt', 1, 'failed'],
    ['/n', 'lte', 10, 'passed'],
    ['/n', 'lte', 9, 'failed'],
    ['/s', 'lte', 'zebra', 'passed'],
    ['/yes', 'lte', 2, 'failed'],
    ['/n', 'exists', undefined, 'passed'],
    ['/object/key', 'exists', true, 'passed'],
    ['/x', 'exists', true, 'failed'],
    ['/x', 'exists', false, 'passed'],
    ['/n', 'exists', false, 'failed'],
    ['/s', 'contains', 'ang', 'passed'],
    ['/s', 'contains', 'x', 'failed'],
    ['/list', 'contains', 'two', 'passed'],
    ['/list', 'contains', { three: 3 }, 'passed'],
    ['/list', 'contains', 2, 'failed'],
    ['/object', 'contains', 'key', 'passed'],
    ['/object', 'contains', 'toString', 'failed'],
    ['/n', 'contains', 1, 'failed'],
    ['/list/1', 'eq', 'two', 'passed'],
    ['/list/-', 'eq', 'two', 'failed'],
    ['/list/01', 'eq', 'two', 'failed'],
  ];
  for (const [pointer, operator, value, expected] of cases) {
    const check = await json(pointer, operator, value);
    t.equal(check?.status, expected, `${pointer} ${operator} ${JSON.stringify(value)}: ${check?.summary}`);
  }
});

t.test('numbers are compared exactly', async (t) => {
  const { store, json } = await setUp(t);
  await store(
    'report.json',
    '{"big": 9007199254740993, "tenth": 0.1000000000000000055, "cents": 1250.00, "huge": 1e999}',
  );
  const status = async (...args: Parameters<typeof json>) => (await json(...args))?.status;
  t.equal(await status('/big', 'gt', 9007199254740991), 'passed');
  t.equal(await status('/tenth', 'eq', 0.1), 'failed');
  t.equal(await status('/tenth', 'gt', 0.1), 'passed');
  t.equal(await status('/cents', 'eq', 1250), 'passed');
  t.equal(await status('/huge', 'gt', 1), 'passed');
  t.equal((await json('/big', 'eq', 1))?.summary, 'report.json: expected /big to be 1, found 9007199254740993');
});

t.test('a failure tells a person what was expected and what was found, on one bounded line', async (t) => {
  const { store, json, judge } = await setUp(t);
  await store(
    'report.json',
    JSON.stringify({ total: 1, text: 'a\nb\u2028c', long: 'x'.repeat(9_000), list: [1, 2, 3, 4, 5] }),
  );
  t.equal((await json('/total', 'eq', 2))?.summary, 'report.json: expected /total to be 2, found 1');
  t.equal(
    (await json('/nope', 'gt', 2))?.summary,
    'report.json: expected /nope to be greater than 2, found nothing there',
  );
  t.equal(
    (await json('/list', 'contains', 9))?.summary,
    'report.json: expected /list to contain 9, found an array of 5',
  );
  t.equal((await json('/text', 'eq', ''))?.summary, 'report.json: expected /text to be "", found "a\\nb c"');
  t.ok(((await json('/long', 'eq', 'y'))?.summary.length ?? 999) < 200);
  const many = Array.from({ length: 50 }, () => ({
    kind: 'json_pointer',
    pointer: '/total',
    operator: 'eq',
    value: 2,
  }));
  const [check] = await judge({ kind: 'output_file', path: 'report.json', checks: many });
  t.ok((check?.summary.length ?? 999) <= 500);
  t.notMatch(check?.summary, /\n/);
});

t.test('what is no JSON fails with the reason', async (t) => {
  const { store, json } = await setUp(t);
  await store('broken.json', '{"total": 1');
  await store('latin1.json', Buffer.from('{"total": "\xe9"}', 'latin1'));
  await store('bom.json', '\ufeff{"total": 1}');
  await store('empty.json', '');
  t.match(await json('/total', 'eq', 1, 'broken.json'), {
    status: 'failed',
    summary: /it is not valid JSON: .*position 11/,
  });
  t.match(await json('/total', 'eq', 1, 'latin1.json'), { status: 'failed', summary: /it is not UTF-8 text/ });
  t.match(await json('/total', 'eq', 1, 'bom.json'), { status: 'passed' });
  t.match(await json('', 'exists', true, 'empty.json'), { status: 'failed', summary: /not valid JSON/ });
});

t.test('large documents are evaluated in a thread, up to 16 MiB', async (t) => {
  const { store, json } = await setUp(t);
  const limit = 16 * 1024 * 1024;
  const filled = (size: number) => {
    const head = '{"list":[';
    const tail = '0],"total":9007199254740993}';
    const zeros = '0,'.repeat(Math.floor((size - head.length - tail.length) / 2));
    return (head + zeros + tail).padEnd(size, ' ');
  };
  await store('most.json', filled(limit));
  await store('more.json', filled(limit + 1));
  await store('deep.json', `{"deep":${'['.repeat(400_000)}${']'.repeat(400_000)},"total":7}`);
  let ticks = 0;
  const ticking = setInterval(() => {
    ticks += 1;
  }, 5);
  const check = await json('/total', 'gt', 9007199254740991, 'most.json');
  clearInterval(ticking);
  t.match(check, { status: 'passed' });
  t.ok(ticks > 5, `the process went on meanwhile (${ticks} ticks)`);
  t.match(await json('/total', 'gt', 1, 'more.json'), { status: 'failed', summary: /has 16777217 bytes/ });
  t.match(await json('/total', 'eq', 7, 'deep.json'), { status: 'passed' });
  t.match(await json('/deep', 'eq', 7, 'deep.json'), { status: 'failed', summary: /too deep or too long to compare/ });
  const all = await Promise.all(Array.from({ length: 5 }, () => json('/total', 'eq', 7, 'deep.json')));
  t.ok(
    all.every((result) => result?.status === 'passed'),
    'more at once than there are threads',
  );
});

t.test('many checks of a document that is not large hold nobody up either', async (t) => {
  const bytes = Buffer.from(`[${'1,'.repeat(20_000)}7]`);
  const check = { kind: 'json_pointer', pointer: '/20000', operator: 'eq', value: 7 } as const;
  const judgeJson = jsonJudge(1);
  const othersRan = async (checks: number) => {
    let ran = false;
    const timer = setImmediate(() => {
      ran = true;
    });
    const judgement = await judgeJson(
      bytes,
      Array.from({ length: checks }, () => check),
      judgeBudget('a'),
    );
    clearImmediate(timer);
    t.same(judgement, { results: Array.from({ length: checks }, () => null) });
    return ran;
  };
  t.equal(await othersRan(1), false, 'one check is quick, and needs no thread');
  t.equal(await othersRan(50), true, 'fifty are not');
});

t.test('an evaluation has a budget, and owners take turns', async (t) => {
  const bytes = Buffer.from(`[${'1,'.repeat(20_000)}7]`);
  const checks = Array.from({ length: 50 }, () => ({
    kind: 'json_pointer' as const,
    pointer: '/20000',
    operator: 'eq' as const,
    value: 7,
  }));
  // Of one thread, so that the order of the turns is that of the ends.
  const judgeJson = jsonJudge(1);
  const spent = { owner: 'a', leftMs: 0 };
  t.same(await judgeJson(bytes, checks, spent), { problem: 'the criteria took longer than 40 s to evaluate' });
  const budget = judgeBudget('a');
  const order: string[] = [];
  const judge = async (name: string, owner: string) => {
    await judgeJson(bytes, checks, owner === 'a' ? budget : judgeBudget(owner));
    order.push(name);
  };
  await Promise.all([judge('a1', 'a'), judge('a2', 'a'), judge('a3', 'a'), judge('b1', 'b')]);
  t.ok(order.indexOf('b1') < order.indexOf('a3'), 'another owner does not wait for all of the first');
  t.same(
    order.filter((name) => name.startsWith('a')),
    ['a1', 'a2', 'a3'],
  );
  t.ok(budget.leftMs < judgeBudget('a').leftMs, 'what was spent is gone');
});

t.test('bytes that changed or went since they were recorded fail', async (t) => {
  const { store, judge, json } = await setUp(t);
  const tampered = await store('report.json', '{"total":1}');
  const criterion = { kind: 'output_file', path: 'report.json', checks: [] };
  t.match(await judge(criterion), [{ status: 'passed' }]);
  await writeFile(tampered, '{"total":2}');
  const changed = { status: 'failed', summary: 'report.json: its stored bytes are not the ones that were recorded' };
  t.match(await judge(criterion), [changed]);
  t.match(await json('/total', 'eq', 2), changed);
  await writeFile(tampered, '{"total":1}');
  await appendFile(tampered, ' '.repeat(100_000));
  t.match(await json('/total', 'eq', 1), changed);
  await unlink(tampered);
  t.match(await judge(criterion), [{ status: 'failed', summary: 'report.json: its bytes are no longer stored' }]);
});

t.test('a malformed criterion of a known kind is not met', async (t) => {
  const { judge } = await setUp(t);
  t.match(await judge({ kind: 'output_file', path: '../x' }), [
    { status: 'failed', summary: 'output file: this criterion is malformed' },
  ]);
});

t.test('a storage that fails decides nothing', async (t) => {
  const { store, storage, outputs } = await setUp(t);
  await store('report.json', '{}');
  const failing = { ...storage, get: async () => Promise.reject(new Error('EIO')) };
  const evaluate = acceptanceEvaluator({ storage: failing });
  const criteria = [{ kind: 'output_file', path: 'report.json' }];
  await t.rejects(evaluate({ organizationId, runId, criteria, outputs }), { message: 'EIO' });
});
