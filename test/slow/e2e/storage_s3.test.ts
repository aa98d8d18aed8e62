import { createHash, randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { request } from 'node:http';
import t from 'tap';
import { openS3Storage } from '../../engine/storage/s3_storage.ts';
import { openJobs } from '../../jobs/support.ts';
import {
  expectSuccess,
  type HeldRun,
  makeTask,
  ownerPath,
  runNext,
  runTask,
  sqlOf,
  storedKeys,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { startProxy } from '../../support/proxy.ts';
import { startS3 } from '../../support/s3.ts';
import { until } from '../../support/wait.ts';

t.setTimeout(120_000);
const MiB = 1024 * 1024;
const s3 = await startS3(t);
const proxy = await startProxy(t, s3.endpoint);
const config = { storageUrl: s3.storageUrl('e2e/files', proxy.url), aws: s3.settings };
const app = await startTestApp(t, { config });
const sql = sqlOf(app);
const org = await createTestOrganization(sql, { maxConcurrentRuns: 50, limits: { maxConcurrentRuns: 50 } });
const { unfinished } = openS3Storage(s3.storageUrl('e2e/files'), s3.settings);

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const artifact = (run: HeldRun, headers: Record<string, string> = {}) =>
  app.owner.fetch(ownerPath(org, `/runs/${run.runId}/artifacts/0/content`), { headers });

t.test('a task with an uploaded input is done by its output, and both lie in the bucket', async (t) => {
  const criterion = {
    kind: 'output_file',
    path: 'out/result.json',
    checks: [{ kind: 'json_pointer', pointer: '/rows', operator: 'eq', value: 3 }],
  };
  const gate = await runTask(app, org);
  const task = await makeTask(app, org, {
    priority: 1000,
    dependsOn: [gate.taskId],
    spec: { inputs: [{ kind: 'upload', path: 'data/input.bin' }], acceptanceCriteria: [criterion] },
  });
  const input = randomBytes(7 * MiB);
  const stored = await app.owner.put(ownerPath(org, `/tasks/${task.id}/inputs/data/input.bin`), input);
  t.match(stored, { status: 201, data: { sizeBytes: input.length, sha256: sha256(input) } });
  expectSuccess(await workerOf(app, gate).complete());

  const run = await runNext(app, org);
  const worker = workerOf(app, run);
  const given = await worker.input('data/input.bin');
  t.ok(Buffer.from(await given.arrayBuffer()).equals(input), 'the run gets what was uploaded');
  const output = JSON.stringify({ rows: 3, text: 'x'.repeat(6 * MiB) });
  expectSuccess(await worker.put('out/result.json', output), 201);
  expectSuccess(await worker.put('out/result.json', output), 201);
  t.equal(expectSuccess(await worker.completeWith('out/result.json')).status, 'succeeded');

  const whole = await artifact(run);
  t.match([whole.status, whole.headers.get('content-length')], [200, String(output.length)]);
  t.equal(await whole.text(), output);
  const part = await artifact(run, { range: 'bytes=0-9' });
  t.match([part.status, await part.text()], [206, output.slice(0, 10)]);
  t.equal((await storedKeys(app, org)).length, 2, 'the output that was replaced has gone');
  t.same(await readdir(app.config.dataDir), [], 'and nothing lies on the disk');
});

t.test('an upload that breaks off leaves nothing', async (t) => {
  const run = await runTask(app, org);
  const before = await storedKeys(app, org);
  const { headers, outputPath } = workerOf(app, run);
  const { hostname, port } = new URL(app.url);
  const upload = request({
    hostname,
    port,
    method: 'PUT',
    path: outputPath('half.bin'),
    headers: {
      authorization: `Bearer ${app.config.agentServiceTokens[0]}`,
      ...headers,
      'content-type': 'application/octet-stream',
    },
  });
  upload.on('error', () => {});
  upload.write(Buffer.alloc(12 * MiB));
  await until('the upload has begun', async () => (await unfinished()) > 0);
  upload.destroy();
  await until('it is given up', async () => (await unfinished()) === 0);
  t.same(await storedKeys(app, org), before);
  expectSuccess(await workerOf(app, run).complete());
});

t.test('while the store is away, what needs it is 503 and all else goes on', async (t) => {
  await until('ready', async () => (await app.owner.get('/readyz')).status === 200);
  t.match(await app.owner.get('/readyz'), { data: { storage: 'reachable' } });
  const spec = { acceptanceCriteria: [{ kind: 'output_file', path: 'a.txt', checks: [] }] };
  const run = await runTask(app, org, { spec });
  const worker = workerOf(app, run);
  expectSuccess(await worker.put('a.txt', 'stored'), 201);

  proxy.cut();
  for (const reply of [await worker.put('b.txt', 'x'), await worker.completeWith('a.txt')]) {
    t.match(reply, { status: 503, code: 'service_unavailable' });
    t.ok(reply.headers.get('retry-after'));
    t.notMatch(JSON.stringify(reply.body), /e2e|127\.0\.0\.1|bucket/, 'no place is told');
  }
  t.match(await worker.heartbeat(), { status: 200 });
  t.match(await app.owner.get('/readyz'), { status: 200, data: { storage: 'unreachable' } });
  t.ok(
    app.logged.some((line) => JSON.stringify(line).includes('the bucket files at')),
    'the log names it',
  );
  const fresh = await startTestApp(t, { config, database: app.database });
  await until('the storage alone is missing', async () =>
    /storage of files/.test(String((await fresh.owner.get('/readyz')).body.message)),
  );

  proxy.restore();
  await until('ready', async () => (await fresh.owner.get('/readyz')).status === 200);
  t.equal(expectSuccess(await worker.completeWith('a.txt')).status, 'succeeded', 'the same call again');
  const response = await artifact(run);
  t.match([response.status, await response.text()], [200, 'stored']);
  proxy.cut();
  const away = await artifact(run);
  t.match([away.status, await away.json()], [503, { error: { code: 'service_unavailable' } }]);
  proxy.restore();
});

t.test('a deleted organization leaves no object', async (t) => {
  t.ok((await storedKeys(app, org)).length > 0);
  const credentials = s3.settings.credentials;
  await openJobs(t, app.database.url, {
    STORAGE_URL: config.storageUrl,
    AWS_ACCESS_KEY_ID: credentials?.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials?.secretAccessKey,
  });
  const deleted = await app.owner.delete(ownerPath(org));
  t.ok(deleted.status < 300, `it responds with ${deleted.status}`);
  await until('the objects are gone', async () => (await storedKeys(app, org)).length === 0);
});
