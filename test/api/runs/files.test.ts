import { createHash, randomBytes, randomUUID } from 'node:crypto';
import t, { type Test } from 'tap';
import type { z } from 'zod';
import type { contextManifestSchema } from '../../../api/runs/files.ts';
import {
  expectSuccess,
  type HeldRun,
  makeTask,
  ownerPath,
  type RawResponse,
  rawCode,
  rawRequest,
  refusalOf,
  runNext,
  runTask,
  sqlOf,
  storedKeys,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization } from '../../support/fixtures.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql);
const elsewhere = await createTestOrganization(sql);

const text = '0123456789';
const binary = randomBytes(300_000);
const etagOf = (bytes: string | Uint8Array) => `"${createHash('sha256').update(bytes).digest('hex')}"`;

/** A run with four artifacts, and one output that it does not call its result. */
const run: HeldRun = await (async () => {
  const held = await runTask(app, org);
  const worker = workerOf(app, held);
  expectSuccess(await worker.put('digits.txt', text), 201);
  expectSuccess(await worker.put('deep/er/data.bin', binary), 201);
  expectSuccess(await worker.put('empty.csv', ''), 201);
  expectSuccess(await worker.put(encodeURIComponent('Größe 🚀 "x".html'), '<script>alert(1)</script>'), 201);
  expectSuccess(await worker.put('private.txt', 'not a result'), 201);
  const artifacts = ['digits.txt', 'deep/er/data.bin', 'empty.csv', 'Größe 🚀 "x".html'];
  expectSuccess(await worker.completeWith(...artifacts));
  return held;
})();

const artifactPath = (index: number | string, id = run.runId) =>
  ownerPath(org, `/runs/${id}/artifacts/${index}/content`);
const artifact = (index: number | string, headers: Record<string, string> = {}, method = 'GET') =>
  rawRequest(app.url, { method, path: artifactPath(index), headers });

t.test('a whole artifact comes with all that a client needs to know', async (t) => {
  const response = await artifact(0);
  t.equal(response.status, 200);
  t.equal(response.body.toString(), text);
  t.match(response.headers, {
    'content-type': 'application/octet-stream',
    'x-media-type': 'text/plain',
    'content-length': '10',
    etag: etagOf(text),
    'accept-ranges': 'bytes',
    'x-content-type-options': 'nosniff',
    'content-disposition': 'attachment; filename=digits.txt',
    'cache-control': 'private, no-cache',
  });
  const large = await artifact(1);
  t.ok(large.body.equals(binary));
  t.match(large.headers, { 'content-disposition': 'attachment; filename=data.bin', 'content-length': '300000' });
  t.match(await artifact(2), { status: 200, headers: { 'content-length': '0' }, body: Buffer.alloc(0) });
});

t.test('a name of any letters downloads under it, and a page of it cannot run here', async (t) => {
  const { headers } = await artifact(3);
  t.match(headers['content-disposition'], /^attachment; filename=/);
  t.match(headers['content-disposition'], "filename*=UTF-8''Gr%C3%B6%C3%9Fe%20%F0%9F%9A%80%20%22x%22.html");
  t.equal(headers['x-content-type-options'], 'nosniff');
  t.match(headers['content-security-policy'], /default-src 'none'|sandbox|default-src 'self'/);
});

/** Ranges of the ten digits, as sent and as returned. */
const ranges: readonly (readonly [string, number, string, string | undefined])[] = [
  ['bytes=0-0', 206, '0', 'bytes 0-0/10'],
  ['bytes=2-5', 206, '2345', 'bytes 2-5/10'],
  ['bytes=7-', 206, '789', 'bytes 7-9/10'],
  ['bytes=-3', 206, '789', 'bytes 7-9/10'],
  ['bytes=-99', 206, text, 'bytes 0-9/10'],
  ['bytes=5-99', 206, '56789', 'bytes 5-9/10'],
  ['bytes=10-', 416, '', 'bytes */10'],
  ['bytes=99-100', 416, '', 'bytes */10'],
  ['bytes=-0', 416, '', 'bytes */10'],
  ['bytes=0-1,4-5', 200, text, undefined],
  ['bytes=5-2', 200, text, undefined],
  ['lines=1-2', 200, text, undefined],
  ['bytes=x', 200, text, undefined],
];

t.test('byte ranges: first, middle, open, suffix, beyond, several, and nonsense', async (t) => {
  for (const [range, status, body, contentRange] of ranges) {
    const response = await artifact(0, { range });
    t.equal(response.status, status, range);
    t.equal(response.headers['content-range'], contentRange, range);
    if (status === 416) t.equal(rawCode(response), 'range_not_satisfiable');
    else t.equal(response.body.toString(), body, range);
  }
  const middle = await artifact(1, { range: 'bytes=65535-262144' });
  t.ok(middle.body.equals(binary.subarray(65_535, 262_145)));
  t.match(await artifact(2, { range: 'bytes=0-' }), { status: 416, headers: { 'content-range': 'bytes */0' } });
});

t.test('If-None-Match and If-Range are honoured', async (t) => {
  const etag = etagOf(text);
  for (const header of [etag, `W/${etag}`, '*', `"x", ${etag}`]) {
    const response = await artifact(0, { 'if-none-match': header });
    t.match(response, { status: 304, headers: { etag } }, header);
    t.equal(response.body.length, 0);
  }
  t.equal((await artifact(0, { 'if-none-match': etag, range: 'bytes=99-' })).status, 304, 'before the range');
  t.equal((await artifact(0, { 'if-none-match': '"other"' })).status, 200);
  t.equal((await artifact(0, { range: 'bytes=0-0', 'if-range': etag })).status, 206);
  for (const header of ['"other"', `W/${etag}`, 'Wed, 21 Oct 2026 07:28:00 GMT']) {
    t.equal((await artifact(0, { range: 'bytes=0-0', 'if-range': header })).status, 200, header);
  }
});

const perResponse = new Set(['date', 'x-request-id', 'connection', 'keep-alive']);
const stable = (response: RawResponse) =>
  Object.fromEntries(Object.entries(response.headers).filter(([name]) => !perResponse.has(name)));

async function headEquals(t: Test, path: string): Promise<void> {
  const get = await rawRequest(app.url, { path });
  const head = await rawRequest(app.url, { method: 'HEAD', path });
  t.equal(head.status, get.status, path);
  t.same(stable(head), stable(get), path);
  t.equal(head.body.length, 0, path);
}

t.test('HEAD returns the headers of GET and no body, refusals too', async (t) => {
  for (const index of [0, 1, 2, 3]) await headEquals(t, artifactPath(index));
  const ranged = await artifact(0, { range: 'bytes=0-1' }, 'HEAD');
  t.match([ranged.status, ranged.headers['content-length']], [200, '10'], 'ranges are for GET alone');
  t.equal((await artifact(0, { 'if-none-match': etagOf(text) }, 'HEAD')).status, 304);
  t.match(await artifact(99, {}, 'HEAD'), { status: 404, body: Buffer.alloc(0) });
});

t.test('files of one path are each run’s own', async (t) => {
  const held = await runTask(app, org);
  const worker = workerOf(app, held);
  expectSuccess(await worker.put('digits.txt', '9876'), 201);
  expectSuccess(await worker.completeWith('digits.txt'));
  const bytesOf = async (id: string) => String((await rawRequest(app.url, { path: artifactPath(0, id) })).body);
  t.same([await bytesOf(held.runId), await bytesOf(run.runId)], ['9876', text]);
});

t.test('only recorded artifacts are served, by their place', async (t) => {
  for (const index of [4, 99, 100_000]) t.equal(rawCode(await artifact(index)), 'not_found', `${index}`);
  for (const index of ['-1', '1.5', 'x', '100001', '1e1', '0x1', '%00', '99999999999999999999', 'digits.txt']) {
    const response = await artifact(index);
    t.match([response.status, rawCode(response)], [400, 'validation_failed'], index);
  }
  t.equal(rawCode(await rawRequest(app.url, { path: artifactPath(0, randomUUID()) })), 'run_not_found');
  const foreign = ownerPath(elsewhere, `/runs/${run.runId}/artifacts/0/content`);
  t.equal(rawCode(await rawRequest(app.url, { path: foreign })), 'run_not_found');
  const open = await runTask(app, org);
  expectSuccess(await workerOf(app, open).put('a', 'a'), 201);
  t.equal(rawCode(await rawRequest(app.url, { path: artifactPath(0, open.runId) })), 'not_found', 'not yet a result');
  expectSuccess(await workerOf(app, open).fail());
  t.equal(rawCode(await rawRequest(app.url, { path: artifactPath(0, open.runId) })), 'not_found', 'nor ever one');
});

t.test('bytes that were lost are missed, not made up', async (t) => {
  const held = await runTask(app, org);
  const before = new Set(await storedKeys(app, org));
  expectSuccess(await workerOf(app, held).put('a.txt', 'abc'), 201);
  expectSuccess(await workerOf(app, held).completeWith('a.txt'));
  for (const key of await storedKeys(app, org)) if (!before.has(key)) await app.services.storage.delete(key);
  t.match(rawCode(await rawRequest(app.url, { path: artifactPath(0, held.runId) })), 'not_found');
});

type Manifest = z.output<typeof contextManifestSchema>;
const contextPath = (path: string, id: string) => ownerPath(org, `/runs/${id}/context/files/content?path=${path}`);

/** A run that was given one file of each sort, and some that were not there. */
async function givenRun(): Promise<HeldRun> {
  const inputs = [
    { kind: 'inline', path: 'notes/über.md', text: '# Über\n', mediaType: 'text/markdown' },
    { kind: 'inline', path: 'plain', text: 'ä' },
    { kind: 'inline', path: 'empty', text: '' },
    { kind: 'upload', path: 'up.csv' },
    { kind: 'upload', path: 'never.csv' },
    { kind: 'artifact', runId: run.runId, artifactIndex: 0, path: 'from/run.txt' },
    { kind: 'artifact', runId: run.runId, artifactIndex: 77, path: 'no/such.txt' },
    { kind: 'artifact', runId: randomUUID(), artifactIndex: 0, path: 'no/run.txt' },
  ];
  const gate = await makeTask(app, org);
  const task = await makeTask(app, org, { dependsOn: [gate.id], spec: { inputs } });
  expectSuccess(await app.owner.put(ownerPath(org, `/tasks/${task.id}/inputs/up.csv`), 'a,b\n1,2\n'), 201);
  expectSuccess(await workerOf(app, await runNext(app, org)).complete());
  return runNext(app, org);
}

t.test('the context manifest lists what was hydrated, and serves exactly that', async (t) => {
  const given = await givenRun();
  const { data } = await app.owner.get<Manifest>(ownerPath(org, `/runs/${given.runId}/context`));
  const file = (path: string, mediaType: string, sizeBytes: number, available = true) => ({
    path,
    name: path.slice(path.lastIndexOf('/') + 1),
    role: 'input',
    mediaType,
    sizeBytes,
    available,
  });
  const missing = (path: string) => file(path, 'application/octet-stream', 0, false);
  t.same(data, {
    version: 1,
    files: [
      file('empty', 'text/plain', 0),
      file('from/run.txt', 'text/plain', 10),
      missing('never.csv'),
      missing('no/run.txt'),
      missing('no/such.txt'),
      file('notes/über.md', 'text/markdown', 8),
      file('plain', 'text/plain', 2),
      file('up.csv', 'text/csv', 8),
    ],
  });
  const contents = { 'notes/über.md': '# Über\n', plain: 'ä', empty: '', 'up.csv': 'a,b\n1,2\n', 'from/run.txt': text };
  for (const [path, content] of Object.entries(contents)) {
    const response = await rawRequest(app.url, { path: contextPath(encodeURIComponent(path), given.runId) });
    t.match([response.status, response.body.toString()], [200, content], path);
    t.equal(response.headers.etag, etagOf(content));
    await headEquals(t, contextPath(encodeURIComponent(path), given.runId));
  }
  const part = await rawRequest(app.url, {
    path: contextPath(encodeURIComponent('notes/über.md'), given.runId),
    headers: { range: 'bytes=2-4' },
  });
  t.match([part.status, part.body.toString(), part.headers['content-range']], [206, 'Üb', 'bytes 2-4/8']);
  expectSuccess(await workerOf(app, given).complete());
});

t.test('context files are found by their exact available path alone', async (t) => {
  const given = await givenRun();
  const ask = (path: string) => rawRequest(app.url, { path: contextPath(path, given.runId) });
  for (const path of ['never.csv', 'no/run.txt', 'Plain', 'plain2', 'notes', 'up', '.incoming', 'organizations']) {
    const response = await ask(path);
    t.match([response.status, rawCode(response)], [404, 'not_found'], path);
  }
  const [key] = await storedKeys(app, org);
  t.match(await ask(encodeURIComponent(key ?? '')), { status: 404 }, 'keys of the storage are no paths');
  const wrong = ['', '..', '../plain', 'notes/../plain', '%2e%2e%2fplain', 'notes%2f%2e%2e%2fplain', './plain', '.'];
  for (const path of [...wrong, '/plain', '%2fetc%2fpasswd', 'a%5c..%5cb', '%5c', 'a%00b', 'a%0ab', 'a//b', 'plain/']) {
    const response = await ask(path);
    t.match([response.status, rawCode(response)], [400, 'validation_failed'], path);
  }
  const base = ownerPath(org, `/runs/${given.runId}/context/files/content`);
  for (const query of [
    '',
    '?path=plain&path=plain',
    '?path=plain&key=x',
    '?Path=plain',
    '?path[]=plain',
    '?path=%zz',
  ]) {
    const { status } = await rawRequest(app.url, { path: `${base}${query}` });
    t.ok(status === 400 || (query === '?path=%zz' && status === 404), `${query}: ${status}`);
  }
  t.match(await rawRequest(app.url, { path: contextPath('plain', randomUUID()) }), { status: 404 });
  const foreign = ownerPath(elsewhere, `/runs/${given.runId}/context/files/content?path=plain`);
  t.equal(rawCode(await rawRequest(app.url, { path: foreign })), 'run_not_found');
  const unknown = await app.owner.get(ownerPath(elsewhere, `/runs/${given.runId}/context`));
  t.equal(refusalOf(unknown), '404 run_not_found');
  expectSuccess(await workerOf(app, given).complete());
});

t.test('a run that was given nothing has an empty manifest', async (t) => {
  t.same((await app.owner.get(ownerPath(org, `/runs/${run.runId}/context`))).data, { version: 1, files: [] });
});
