import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { CreateMultipartUploadCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import t from 'tap';
import { openStorage, StorageUnavailableError, storagePlace } from '../../../../engine/storage/index.ts';
import { everyCall, from, MiB, mebibytes, storageContract } from '../../../engine/storage/contract.ts';
import { oddPrefix, openS3Storage, s3Client } from '../../../engine/storage/s3_storage.ts';
import { startProxy } from '../../../support/proxy.ts';
import { s3Url, startS3 } from '../../../support/s3.ts';
import { until } from '../../../support/wait.ts';

// The machine's own credentials and role must not reach the tests.
for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_PROFILE']) delete process.env[name];
process.env['AWS_EC2_METADATA_DISABLED'] = 'true';

const s3 = await startS3(t);
const fresh = () => openS3Storage(s3.storageUrl(oddPrefix()), s3.settings);

storageContract(t, async () => fresh());

t.test('what does not belong to the storage is neither listed nor deleted', async (t) => {
  const [mine, other] = ['', 'x'].map((end) => s3.storageUrl(`shared${end}`));
  const client = s3Client(mine ?? '', s3.settings);
  const storage = openStorage(mine ?? '', s3.settings);
  await storage.put('a/b', from('mine'));
  await openStorage(other ?? '', s3.settings).put('a/b', from('other'));
  const foreign = { Bucket: s3.bucket, Key: 'elsewhere/a' };
  await client.send(new CreateMultipartUploadCommand(foreign));
  await client.send(new PutObjectCommand({ ...foreign, Body: 'x' }));
  t.equal(await storage.removeAbandoned(0), 0);
  t.same(await storage.deletePrefix('a/'), { deleted: 1, done: true });
  t.equal(await text(await openStorage(other ?? '', s3.settings).get('a/b')), 'other');
  t.same(await openStorage(s3.storageUrl('elsewhere'), s3.settings).removeAbandoned(0), 1, 'its own is');
});

t.test('uploads that nobody will finish go once they are old, page by page', async (t) => {
  const prefix = randomUUID();
  const { storage, unfinished } = openS3Storage(s3.storageUrl(prefix), s3.settings);
  const client = s3Client(s3.storageUrl(prefix), s3.settings);
  for (let index = 0; index < 203; index += 1) {
    await client.send(new CreateMultipartUploadCommand({ Bucket: s3.bucket, Key: `${prefix}/a/${index}` }));
  }
  t.equal(await storage.removeAbandoned(3_600_000), 0, 'none of them is old');
  t.equal(await unfinished(), 203);
  t.equal(await storage.removeAbandoned(0), 203);
  t.equal(await unfinished(), 0);
});

t.test('a storage without prefix takes the whole bucket', async (t) => {
  const storage = openStorage(s3Url('others', '', s3.endpoint), s3.settings);
  await storage.put('a/b', from('x'));
  t.same(await storage.list('a/'), { objects: [{ key: 'a/b', size: 1 }], next: null });
  t.equal(await storage.removeAbandoned(0), 0);
  t.same(await storage.deletePrefix('a/'), { deleted: 1, done: true });
});

t.test('a bucket that is not there makes every call unavailable, and is named', async (t) => {
  const storage = openStorage(s3Url('missing', 'x', s3.endpoint), s3.settings);
  const { removeAbandoned: _, ...calls } = everyCall(storage);
  const message = `the bucket missing at ${new URL(s3.endpoint).host}: there is no such bucket`;
  for (const [name, call] of Object.entries(calls)) {
    await t.rejects(call(), { name: 'StorageUnavailableError', message }, name);
  }
});

t.test('without credentials every call is unavailable, and says which settings are missing', async (t) => {
  const storage = openStorage(s3.storageUrl());
  for (const [name, call] of Object.entries(everyCall(storage))) {
    await t.rejects(call(), { name: 'StorageUnavailableError', message: /AWS_ACCESS_KEY_ID/ }, name);
  }
});

t.test('a server that is down makes every call unavailable, until it is back', async (t) => {
  const proxy = await startProxy(t, s3.endpoint);
  const { storage } = openS3Storage(s3.storageUrl(randomUUID(), proxy.url), s3.settings);
  await storage.put('a/b', from('x'));
  proxy.cut();
  for (const [name, call] of Object.entries(everyCall(storage))) {
    await t.rejects(call(), { name: 'StorageUnavailableError', message: /cannot be reached/ }, name);
  }
  proxy.restore();
  t.equal(await text(await storage.get('a/b')), 'x');
});

t.test('a quota that is used up, or a full disk of the store, is no room', async (t) => {
  for (const [status, code] of [
    [403, 'QuotaExceeded'],
    [507, 'XMinioStorageFull'],
  ] as const) {
    const server = createServer((_, response) => {
      response.writeHead(status, { 'content-type': 'application/xml' }).end(`<Error><Code>${code}</Code></Error>`);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.teardown(() => server.close());
    const { port } = server.address() as AddressInfo;
    const storage = openStorage(s3.storageUrl('', `http://127.0.0.1:${port}`), s3.settings);
    await t.rejects(storage.put('a/b', from('x')), {
      name: 'StorageFullError',
      message: `the bucket files at 127.0.0.1:${port}: it has no room (${status} ${code})`,
    });
  }
});

t.test('a host that nobody knows is named', async (t) => {
  const storage = openStorage(s3Url('files', '', 'http://nowhere.invalid'), s3.settings);
  await t.rejects(storage.check(), { message: /^the bucket files at nowhere\.invalid: it cannot be reached: E/ });
  t.equal(storagePlace('s3://files/x?region=eu-north-1'), 's3://files/x/ at AWS, eu-north-1');
});

t.test('a server that says nothing is given up by the check', async (t) => {
  const proxy = await startProxy(t, s3.endpoint);
  proxy.freeze();
  const storage = openStorage(s3.storageUrl('', proxy.url), s3.settings);
  await t.rejects(storage.check(), { message: /no response within 3 s/ });
  const controller = new AbortController();
  const read = storage.get('a/b', { signal: controller.signal });
  controller.abort(new Error('gone'));
  await t.rejects(read, { message: 'gone' }, 'and by whoever waits for it no longer');
});

t.test('a download that breaks off is an error, not a short file', async (t) => {
  const proxy = await startProxy(t, s3.endpoint);
  const storage = openStorage(s3.storageUrl(randomUUID(), proxy.url), s3.settings);
  await storage.put('a/b', mebibytes(20));
  const body = await storage.get('a/b');
  await once(body, 'readable');
  proxy.cut();
  await t.rejects(buffer(body), StorageUnavailableError);
});

t.test('an upload that the server leaves half-way fails, and is swept later', async (t) => {
  const proxy = await startProxy(t, s3.endpoint);
  const prefix = randomUUID();
  const { unfinished } = openS3Storage(s3.storageUrl(prefix), s3.settings);
  const storage = openStorage(s3.storageUrl(prefix, proxy.url), s3.settings);
  const source = new PassThrough();
  const put = t.rejects(storage.put('a/b', source), StorageUnavailableError);
  source.write(Buffer.alloc(6 * MiB));
  await until('a part is there', async () => (await unfinished()) > 0);
  proxy.cut();
  source.end(Buffer.alloc(6 * MiB));
  await put;
  proxy.restore();
  t.equal(await storage.stat('a/b'), null);
  t.equal(await unfinished(), 1, 'nobody could give it up');
  t.equal(await storage.removeAbandoned(0), 1);
});
