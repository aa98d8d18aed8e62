import { createHash } from 'node:crypto';
import t from 'tap';
import {
  agentPath,
  expectSuccess,
  type HeldRun,
  makeTask,
  ownerPath,
  rawCode,
  rawRequest,
  refusalOf,
  runTask,
  sqlOf,
  storedKeys,
  workerOf,
} from '../../support/api_fixtures.ts';
import { SERVICE_TOKEN, startTestApp } from '../../support/app.ts';
import { createTestOrganization } from '../../support/fixtures.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql, { maxConcurrentRuns: 50, limits: { maxConcurrentRuns: 50 } });
const authorization = `Bearer ${SERVICE_TOKEN}`;
const octets = { 'content-type': 'application/octet-stream' };

const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** What is recorded for a run, by path. */
async function recorded(run: HeldRun): Promise<Record<string, number>> {
  const { rows } = await app.database.owner.query<{ path: string; size: string }>(
    'select path, size from app.run_outputs where organization_id = $1 and run_id = $2',
    [run.organizationId, run.runId],
  );
  return Object.fromEntries(rows.map((row) => [row.path, Number(row.size)]));
}

t.test('an output is stored as it is, and described by what its bytes say', async (t) => {
  const run = await runTask(app, org);
  const worker = workerOf(app, run);
  const json = '{"total": 3}';
  const reply = await worker.put('reports/r.json', json);
  t.equal(reply.status, 201);
  t.same(reply.data, { path: 'reports/r.json', mediaType: 'application/json', sizeBytes: 12, sha256: sha256(json) });
  const png = Buffer.from('89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de', 'hex');
  t.match((await worker.put('not-a-page.html', png)).data, { mediaType: 'image/png' });
  t.match((await worker.put('empty', '')).data, { sizeBytes: 0, sha256: sha256('') });
  t.same(await recorded(run), { 'reports/r.json': 12, 'not-a-page.html': png.length, empty: 0 });
  expectSuccess(await worker.complete());
});

t.test('the same path again replaces the file, and the old bytes go', async (t) => {
  const run = await runTask(app, org);
  const worker = workerOf(app, run);
  const before = await storedKeys(app, org);
  expectSuccess(await worker.put('a.txt', 'first'), 201);
  const [first] = (await storedKeys(app, org)).filter((key) => !before.includes(key));
  t.ok(first);
  for (const content of ['second', 'second']) {
    t.match((await worker.put('a.txt', content)).data, { sizeBytes: 6, sha256: sha256(content) });
  }
  const left = (await storedKeys(app, org)).filter((key) => !before.includes(key));
  t.equal(left.length, 1, 'one file, one object');
  t.notOk(left.includes(first ?? ''));
  expectSuccess(await worker.completeWith('a.txt'));
  const artifact = await app.owner.fetch(ownerPath(org, `/runs/${run.runId}/artifacts/0/content`));
  t.equal(await artifact.text(), 'second');
});

/** Letters of three bytes that do not compress: an index entry of theirs is as long as they are. */
function distinctLetters(count: number): string {
  return Array.from({ length: count }, (_, n) => String.fromCharCode(0x4e00 + ((n * 7919) % 20_000))).join('');
}

const badPaths = [
  '..',
  '../a',
  'a/../b',
  'a/..',
  './a',
  'a/.',
  '%2e%2e',
  '%2e%2e%2fa',
  'a%2f%2e%2e%2fb',
  '%2Fetc%2Fpasswd',
  '/etc/passwd',
  'a//b',
  'a/',
  'a%5cb',
  '..%5c..%5ca',
  'a%00b',
  'a%0ab',
  'a%7fb',
  'a%e2%80%aegpj.exe',
  'a%e2%80%8fb',
  'a%d8%9cb',
  'a%e2%80%a8b',
  '.git/config',
  'a/.GIT',
  'a/.git%20/hooks/pre-commit',
  'git~1/config',
  '%c3%28',
  '%',
  'x'.repeat(1001),
  encodeURIComponent(distinctLetters(334)),
  encodeURIComponent(distinctLetters(1000)),
];

t.test('a path that leaves its folder, or is none, is refused', async (t) => {
  const run = await runTask(app, org);
  const { headers } = workerOf(app, run);
  const before = await storedKeys(app, org);
  const task = await makeTask(app, org);
  for (const bad of badPaths) {
    for (const [name, base, more] of [
      ['output', `/internal/runs/${run.runId}/outputs/`, { authorization, ...headers }],
      ['input', ownerPath(org, `/tasks/${task.id}/inputs/`), {}],
      ['agent input', agentPath(org, `/tasks/${task.id}/inputs/`), { authorization }],
    ] as const) {
      const response = await rawRequest(app.url, {
        method: 'PUT',
        path: `${base}${bad}`,
        headers: { ...octets, ...more },
        body: 'x',
      });
      t.match([response.status, rawCode(response)], [400, 'validation_failed'], `${name} ${bad.slice(0, 30)}`);
    }
  }
  t.same(await recorded(run), {});
  t.same(await storedKeys(app, org), before);
  expectSuccess(await workerOf(app, run).complete());
});

t.test('any other path is kept to the letter', async (t) => {
  const run = await runTask(app, org);
  const worker = workerOf(app, run);
  const longest = `${distinctLetters(333)}x`;
  const names = [
    'Größe 🚀/ö.txt',
    'a b+c%20d&e=f?g#h',
    '...',
    '..a',
    'a..',
    '.hidden',
    '~',
    "it's",
    'a:b',
    '\u00e9',
    'o\u0308',
    longest,
  ];
  for (const name of names) {
    const encoded = name.split('/').map(encodeURIComponent).join('/');
    const reply = await worker.put(encoded, name);
    t.match([reply.status, reply.data?.path], [201, name], name.slice(0, 40));
  }
  t.same(new Set(Object.keys(await recorded(run))), new Set(names));
  expectSuccess(await worker.completeWith(...names));
  for (const [index, name] of names.entries()) {
    const response = await app.owner.fetch(ownerPath(org, `/runs/${run.runId}/artifacts/${index}/content`));
    t.equal(await response.text(), name);
  }
});

t.test('a file is stored beside those that are there, and nothing of one that is refused', async (t) => {
  const run = await runTask(app, org);
  const worker = workerOf(app, run);
  t.equal((await worker.put('deep/Report.md', 'first')).status, 201);
  const before = await storedKeys(app, org);
  for (const path of ['deep/report.md', 'deep', 'Deep/Report.md/x']) {
    t.equal(refusalOf(await worker.put(path, 'second')), '400 validation_failed layout_conflict', path);
  }
  t.same(await storedKeys(app, org), before);
  t.equal((await worker.put('deep/Report.md', 'third')).status, 201, 'the same path replaces it');
  const named = await worker.completeWith('deep/Report.md', 'deep/report.md');
  t.equal(refusalOf(named), '400 validation_failed custom', 'nor are they named together');
  expectSuccess(await worker.completeWith('deep/Report.md'));
});

t.test('a run stores at most a thousand files', async (t) => {
  const run = await runTask(app, org);
  await app.database.owner.query(
    `insert into app.run_outputs (organization_id, run_id, path, layout_key, storage_key, size, sha256, media_type)
     select $1, $2, 'f' || n, 'f' || n, 'k' || n, 0, repeat('0', 64), 'text/plain' from generate_series(1, 1000) n`,
    [run.organizationId, run.runId],
  );
  const before = await storedKeys(app, org);
  t.equal(refusalOf(await workerOf(app, run).put('one-more', 'x')), '400 validation_failed too_many_files');
  t.same(await storedKeys(app, org), before);
  expectSuccess(await workerOf(app, run).put('f1', 'replaces one'), 201);
});

t.test('the service token alone opens the files of a run', async (t) => {
  const run = await runTask(app, org);
  for (const client of [app.owner, app.owner.as(run.executionToken), app.owner.as('x'.repeat(40))]) {
    const worker = workerOf(app, run, client);
    t.equal(refusalOf(await worker.put('a', 'a')), '401 agent_unauthorized');
    t.equal(refusalOf(await worker.inputs()), '401 agent_unauthorized');
    t.equal((await worker.input('a')).status, 401);
  }
  expectSuccess(await workerOf(app, run).complete());
});
