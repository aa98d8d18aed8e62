import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import {
  expectSuccess,
  type HeldRun,
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
import { createTestOrganization, endLease } from '../../support/fixtures.ts';
import { until } from '../../support/wait.ts';

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

/** Uploads that are still on their way to their place, as the storage keeps them. */
async function unfinished(): Promise<string[]> {
  return readdir(path.join(fileURLToPath(app.config.storageUrl), '.incoming')).catch(() => []);
}

/** An upload that the test sends piece by piece. */
function slowUpload(run: HeldRun, name: string, length?: number): ClientRequest {
  const { hostname, port } = new URL(app.url);
  const { headers, outputPath } = workerOf(app, run);
  return request({
    hostname,
    port,
    method: 'PUT',
    path: outputPath(name),
    headers: { authorization, ...headers, ...octets, ...(length === undefined ? {} : { 'content-length': length }) },
  });
}

/** So many MiB, made as they are asked for: a server that does not read stops them. */
function mebibytes(count: number): { source: Readable; piece: Buffer; made: () => number } {
  const piece = randomBytes(1024 * 1024);
  let made = 0;
  const source = new Readable({
    read() {
      made += 1;
      this.push(made <= count ? piece : null);
    },
  });
  return { source, piece, made: () => made };
}

t.test('20 MB pass through in pieces, and come back the same', async (t) => {
  const run = await runTask(app, org);
  const { source, piece } = mebibytes(20);
  const upload = slowUpload(run, 'large.bin');
  const received = once(upload, 'response') as Promise<[IncomingMessage]>;
  await pipeline(source, upload);
  const [response] = await received;
  const { data } = JSON.parse((await buffer(response)).toString());
  const whole = Buffer.concat(Array.from({ length: 20 }, () => piece));
  t.match(data, { sizeBytes: whole.length, sha256: sha256(whole) });
  expectSuccess(await workerOf(app, run).completeWith('large.bin'));
  const artifact = await app.owner.fetch(ownerPath(org, `/runs/${run.runId}/artifacts/0/content`));
  t.ok(Buffer.from(await artifact.arrayBuffer()).equals(whole));
});

/** The value once it has stopped to change. */
async function standingStill(read: () => number): Promise<number> {
  for (let last = -1; ; ) {
    const now = read();
    if (now === last) return now;
    last = now;
    await delay(250);
  }
}

t.test('while the disk stands still an upload waits: the server takes no more than it can store', async (t) => {
  const run = await runTask(app, org);
  const { storage } = app.services;
  const { put } = storage;
  const stuck = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const standing: typeof put = async (key, source, options) => {
    begun.resolve();
    await stuck.promise;
    return put(key, source, options);
  };
  Object.assign(storage, { put: standing });
  t.teardown(async () => void Object.assign(storage, { put }));
  const { source, made } = mebibytes(64);
  const upload = slowUpload(run, 'waits.bin');
  const sending = pipeline(source, upload).catch(() => {});
  await begun.promise;
  const taken = await standingStill(made);
  t.ok(taken < 32, `${taken} of 64 MiB left the client while nothing was stored`);
  const received = once(upload, 'response') as Promise<[IncomingMessage]>;
  stuck.resolve();
  await sending;
  const [response] = await received;
  t.equal(response.statusCode, 201, 'and then it goes on');
  response.resume();
  t.same(await recorded(run), { 'waits.bin': 64 * 1024 * 1024 });
  expectSuccess(await workerOf(app, run).complete());
});

t.test('an upload that breaks off leaves nothing', async (t) => {
  const run = await runTask(app, org);
  const before = await storedKeys(app, org);
  const upload = slowUpload(run, 'half.bin', 1000);
  upload.on('error', () => {});
  upload.write(Buffer.alloc(500));
  await until('the upload has begun', async () => (await unfinished()).length > 0);
  upload.destroy();
  await until('it is given up', async () => (await unfinished()).length === 0);
  t.same(await storedKeys(app, org), before);
  t.same(await recorded(run), {});
  t.notOk(
    app.logged.some((line) => line['msg'] === 'a request failed'),
    'and it is no failure of ours',
  );
  expectSuccess(await workerOf(app, run).put('half.bin', 'whole'), 201);
  t.same(await recorded(run), { 'half.bin': 5 });
  expectSuccess(await workerOf(app, run).complete());
});

t.test('an upload whose lease ends on the way is refused, and its bytes go', async (t) => {
  const run = await runTask(app, org);
  const before = await storedKeys(app, org);
  const upload = slowUpload(run, 'late.bin', 1000);
  const received = once(upload, 'response') as Promise<[IncomingMessage]>;
  upload.write(Buffer.alloc(500));
  await until('the upload has begun', async () => (await unfinished()).length > 0);
  await endLease(sql, run);
  upload.end(Buffer.alloc(500));
  const [response] = await received;
  t.equal(response.statusCode, 409);
  t.match(JSON.parse((await buffer(response)).toString()).error, {
    code: 'run_lease_expired',
    issues: [{ code: 'lease_lost' }],
  });
  t.same(await recorded(run), {});
  t.same(await storedKeys(app, org), before);
  t.same(await unfinished(), []);
});

t.test('without a lease not one byte is taken', async (t) => {
  const run = await runTask(app, org);
  const before = await storedKeys(app, org);
  const put = (headers: Record<string, string>, name = 'a.txt') =>
    app.service.put(workerOf(app, run).outputPath(name), 'x', {
      headers: { ...workerOf(app, run).headers, ...headers },
    });
  t.equal(refusalOf(await put({ 'x-lease-token': '1.x' })), '409 run_lease_expired lease_lost');
  t.equal(refusalOf(await put({ 'x-organization-id': randomUUID() })), '409 run_lease_expired lease_lost');
  const upload = slowUpload({ ...run, leaseToken: '1.x' }, 'b.bin', 50_000_000);
  upload.setHeader('expect', '100-continue');
  let asked = false;
  upload.on('continue', () => {
    asked = true;
  });
  upload.on('error', () => {});
  upload.flushHeaders();
  const [response] = (await once(upload, 'response')) as [IncomingMessage];
  t.match([response.statusCode, asked], [409, false], 'refused before the body is asked for');
  response.resume();
  upload.destroy();
  t.same(await storedKeys(app, org), before);
  expectSuccess(await workerOf(app, run).complete());
});

t.test('headers, type and size of an upload are checked', async (t) => {
  const run = await runTask(app, org);
  const { outputPath, headers } = workerOf(app, run);
  const put = (given: Record<string, string>, body = 'x') =>
    rawRequest(app.url, { method: 'PUT', path: outputPath('a.txt'), headers: { authorization, ...given }, body });
  const without = (name: string) => Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name));
  const cases: readonly (readonly [string, Record<string, string>, number, string])[] = [
    ['no organization', { ...octets, ...without('x-organization-id') }, 400, 'validation_failed'],
    ['no lease', { ...octets, ...without('x-lease-token') }, 400, 'validation_failed'],
    ['a bad organization', { ...octets, ...headers, 'x-organization-id': 'acme' }, 400, 'validation_failed'],
    ['a long lease', { ...octets, ...headers, 'x-lease-token': 'x'.repeat(301) }, 400, 'validation_failed'],
    ['no type', headers, 415, 'unsupported_media_type'],
    ['another type', { ...headers, 'content-type': 'text/csv' }, 415, 'unsupported_media_type'],
    ['JSON', { ...headers, 'content-type': 'application/json' }, 415, 'unsupported_media_type'],
  ];
  for (const [name, given, status, code] of cases) {
    const response = await put(given);
    t.match([response.status, rawCode(response)], [status, code], name);
  }
  const huge = slowUpload(run, 'huge.bin', 1_073_741_825);
  huge.on('error', () => {});
  huge.flushHeaders();
  const [response] = (await once(huge, 'response')) as [IncomingMessage];
  t.equal(response.statusCode, 413);
  t.match(JSON.parse((await buffer(response)).toString()), { error: { code: 'payload_too_large' } });
  huge.destroy();
  t.same(await recorded(run), {});
  expectSuccess(await workerOf(app, run).complete());
});
