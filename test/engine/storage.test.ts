import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { lstat, mkdir, mkdtemp, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import {
  openStorage,
  organizationPrefix,
  receiveFile,
  runOutputKey,
  type Storage,
  StorageMissingError,
  StorageTooLargeError,
} from '../../engine/storage/index.ts';

async function freshStorage(test: Test): Promise<{ root: string; storage: Storage }> {
  const parent = await mkdtemp(path.join(tmpdir(), 'storage-test-'));
  test.teardown(() => rm(parent, { recursive: true, force: true }));
  const root = path.join(parent, 'files');
  return { root, storage: openStorage(pathToFileURL(root).href) };
}

async function everyFile(root: string): Promise<string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => !entry.isDirectory()).map((entry) => path.join(entry.parentPath, entry.name));
}

const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex');
const from = (content: string) => Readable.from([Buffer.from(content)]);

t.test('what is put comes back whole, hashed, and for the owner of the process alone', async (t) => {
  const { root, storage } = await freshStorage(t);
  const bytes = randomBytes(300_000);
  const key = runOutputKey(randomUUID(), randomUUID());
  const stored = await storage.put(
    key,
    Readable.from([bytes.subarray(0, 1), bytes.subarray(1, 70_000), bytes.subarray(70_000)]),
  );
  t.same(stored, { size: 300_000, sha256: sha256(bytes) });
  t.ok(bytes.equals(await buffer(await storage.get(key))));
  t.same(await storage.stat(key), { size: 300_000 });
  const file = path.join(root, key);
  t.equal((await lstat(file)).mode & 0o777, 0o600);
  for (let folder = path.dirname(file); folder.startsWith(root); folder = path.dirname(folder)) {
    t.equal((await lstat(folder)).mode & 0o777, 0o700, folder);
  }
  t.same(await everyFile(root), [file], 'no temporary file is left');
});

t.test('a put over an object replaces it in one step, and readers keep what they opened', async (t) => {
  const { storage } = await freshStorage(t);
  await storage.put('a/b', from('old text'));
  const opened = await storage.get('a/b');
  await storage.put('a/b', from('new'));
  t.equal(await text(opened), 'old text');
  t.equal(await text(await storage.get('a/b')), 'new');
});

t.test('ranges are inclusive at both ends', async (t) => {
  const { storage } = await freshStorage(t);
  await storage.put('a/b', from('0123456789'));
  t.equal(await text(await storage.get('a/b', { start: 2, end: 4 })), '234');
  t.equal(await text(await storage.get('a/b', { start: 7 })), '789');
  t.equal(await text(await storage.get('a/b', { end: 0 })), '0');
});

t.test('an empty object is an object', async (t) => {
  const { storage } = await freshStorage(t);
  t.same(await storage.put('a/empty', Readable.from([])), { size: 0, sha256: sha256('') });
  t.equal(await text(await storage.get('a/empty')), '');
});

t.test('what is missing is a typed error before any byte, and null for stat', async (t) => {
  const { storage } = await freshStorage(t);
  await t.rejects(storage.get('a/b'), StorageMissingError, 'before the root exists');
  await storage.put('a/b/c', from('x'));
  await t.rejects(storage.get('a/z'), StorageMissingError);
  await t.rejects(storage.get('a/b'), StorageMissingError, 'a folder is no object');
  await t.rejects(storage.get('a/b/c/d'), StorageMissingError, 'nor is what lies below an object');
  t.equal(await storage.stat('a/z'), null);
  await storage.delete('a/z');
  await storage.delete('nowhere/at/all');
});

t.test('too many bytes end the put at once, leave nothing, and leave the source alive', async (t) => {
  const { root, storage } = await freshStorage(t);
  let sent = 0;
  const endless = new Readable({
    read() {
      sent += 1000;
      this.push(Buffer.alloc(1000));
    },
  });
  t.teardown(() => endless.destroy());
  await t.rejects(storage.put('a/b', endless, { maxBytes: 10_000 }), StorageTooLargeError);
  t.ok(sent < 1_000_000, `read ${sent} bytes of an endless source`);
  t.notOk(endless.destroyed, 'the handler can still answer the request');
  t.same(await everyFile(root), []);
  t.equal(
    (await storage.put('a/b', from('x'.repeat(10_000)), { maxBytes: 10_000 })).size,
    10_000,
    'exactly at the limit',
  );
});

t.test('a request whose upload is too large can still be answered', async (t) => {
  const { storage } = await freshStorage(t);
  const server = createServer((req, res) => {
    storage.put('a/b', req, { maxBytes: 1000 }).then(
      () => res.writeHead(201).end(),
      (error) => res.writeHead(error instanceof StorageTooLargeError ? 413 : 500).end(() => req.resume()),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const upload = request({ port: (server.address() as AddressInfo).port, method: 'PUT' });
  upload.end(Buffer.alloc(2_000_000));
  const [response] = await once(upload, 'response');
  t.equal(response.statusCode, 413);
  response.resume();
});

t.test('an abort ends a put whose source is silent, and leaves nothing', async (t) => {
  const { root, storage } = await freshStorage(t);
  const silent = new PassThrough();
  silent.write('some bytes');
  const controller = new AbortController();
  const put = storage.put('a/b', silent, {
    signal: controller.signal,
    observe: () => setImmediate(() => controller.abort(new Error('gone'))),
  });
  await t.rejects(put, { message: 'gone' });
  t.same(await everyFile(root), []);
  t.equal(await storage.stat('a/b'), null);
  await t.rejects(storage.put('a/b', from('x'), { signal: controller.signal }), { message: 'gone' });
});

t.test('a source that fails fails the put, and leaves nothing', async (t) => {
  const { root, storage } = await freshStorage(t);
  async function* broken() {
    yield Buffer.from('first');
    throw new Error('the line went dead');
  }
  await t.rejects(storage.put('a/b', Readable.from(broken())), { message: 'the line went dead' });
  await t.rejects(storage.put('a/b', broken()), { message: 'the line went dead' });
  t.same(await everyFile(root), []);
});

t.test('a put holds no more of a file in memory than it is writing', async (t) => {
  const { storage } = await freshStorage(t);
  const MiB = 1024 * 1024;
  async function* many() {
    for (let index = 0; index < 256; index += 1) yield Buffer.alloc(MiB, index);
  }
  const before = process.memoryUsage().rss;
  let highest = before;
  await storage.put('a/b', many(), {
    signal: new AbortController().signal,
    observe: () => {
      highest = Math.max(highest, process.memoryUsage().rss);
    },
  });
  t.ok(highest - before < 160 * MiB, `${Math.round((highest - before) / MiB)} MiB more for 256 MiB`);
});

t.test('a put asks its source for more only when the last chunk is written', async (t) => {
  const { storage } = await freshStorage(t);
  const chunk = 64 * 1024;
  const total = 200 * chunk;
  let made = 0;
  let seen = 0;
  let ahead = 0;
  const source = new Readable({
    highWaterMark: 1,
    read() {
      if (made < total) made += chunk;
      else return void this.push(null);
      this.push(Buffer.alloc(chunk));
    },
  });
  await storage.put('a/b', source, {
    observe: (bytes) => {
      seen += bytes.length;
      ahead = Math.max(ahead, made - seen);
    },
  });
  t.equal(seen, total);
  t.ok(ahead <= 3 * chunk, `the source was at most ${ahead} bytes ahead`);
});

t.test('keys and prefixes that we would not make are refused', async (t) => {
  const { storage } = await freshStorage(t);
  const bad = [
    '',
    '/',
    '/etc/passwd',
    '..',
    'a/../b',
    'a//b',
    'a/',
    './a',
    '.incoming/x',
    'a/.hidden',
    'a\\b',
    'a\0b',
    'a b',
  ];
  for (const key of [...bad, 'ä', 'x'.repeat(600), `${'x'.repeat(200)}/a`]) {
    await t.rejects(storage.put(key, from('x')), RangeError, JSON.stringify(key.slice(0, 20)));
    await t.rejects(storage.get(key), RangeError);
    await t.rejects(storage.stat(key), RangeError);
    await t.rejects(storage.delete(key), RangeError);
  }
  for (const prefix of ['', '/', 'a', '../', 'a/../', '.incoming/']) {
    await t.rejects(storage.deletePrefix(prefix), RangeError, `prefix ${prefix}`);
    await t.rejects(storage.list(prefix), RangeError);
  }
});

t.test('symbolic links do not lead out of the root', async (t) => {
  const { root, storage } = await freshStorage(t);
  const outside = path.join(path.dirname(root), 'outside');
  await mkdir(outside);
  await writeFile(path.join(outside, 'secret'), 'secret');
  await storage.put('a/b', from('x'));
  await symlink(outside, path.join(root, 'a', 'folder'));
  await symlink(path.join(outside, 'secret'), path.join(root, 'a', 'file'));
  await t.rejects(storage.get('a/folder/secret'), /symbolic link/);
  await t.rejects(storage.get('a/file'));
  await t.rejects(storage.put('a/folder/new', from('x')), /symbolic link/);
  await t.rejects(storage.delete('a/folder/secret'), /symbolic link/);
  await t.rejects(storage.deletePrefix('a/folder/'), /symbolic link/);
  await t.rejects(storage.list('a/folder/'), /symbolic link/);
  t.same(await storage.list('a/'), { objects: [{ key: 'a/b', size: 1 }], next: null });
  t.same(await readdir(outside), ['secret']);
  t.same(await storage.deletePrefix('a/'), { deleted: 3, done: true }, 'the links go, what they point at stays');
  t.same(await readdir(outside), ['secret']);
});

t.test('a root that is itself reached through a link works', async (t) => {
  const { root, storage: direct } = await freshStorage(t);
  await direct.put('a/b', from('x'));
  const link = path.join(path.dirname(root), 'link');
  await symlink(root, link);
  const storage = openStorage(pathToFileURL(link).href);
  t.equal(await text(await storage.get('a/b')), 'x');
  await storage.put('a/c', from('y'));
  t.equal(await text(await direct.get('a/c')), 'y');
});

t.test('a prefix is deleted in batches, and only it', async (t) => {
  const { root, storage } = await freshStorage(t);
  const mine = randomUUID();
  const other = randomUUID();
  for (let run = 0; run < 3; run += 1) {
    const runId = randomUUID();
    for (let index = 0; index < 4; index += 1) await storage.put(runOutputKey(mine, runId), from('x'));
  }
  const kept = runOutputKey(other, randomUUID());
  await storage.put(kept, from('kept'));
  const counts: number[] = [];
  for (let done = false; !done; ) {
    const step = await storage.deletePrefix(organizationPrefix(mine), { batch: 5 });
    counts.push(step.deleted);
    done = step.done;
  }
  t.same(counts, [5, 5, 2]);
  t.same(await readdir(path.join(root, 'organizations')), [other], 'empty folders are gone too');
  t.equal(await text(await storage.get(kept)), 'kept');
  t.same(await storage.deletePrefix(organizationPrefix(mine)), { deleted: 0, done: true }, 'again is fine');
});

t.test('two deletions and puts at once end well', async (t) => {
  const { storage } = await freshStorage(t);
  const prefix = 'organizations/x/';
  const all = async () => {
    let deleted = 0;
    for (let done = false; !done; ) {
      const step = await storage.deletePrefix(prefix, { batch: 7 });
      deleted += step.deleted;
      done = step.done;
    }
    return deleted;
  };
  for (let index = 0; index < 40; index += 1) await storage.put(`${prefix}r${index % 5}/${index}`, from('x'));
  const [first, second] = await Promise.all([all(), all()]);
  t.equal(first + second, 40, 'each object counts once');
  await Promise.all(
    Array.from({ length: 40 }, async (_, index) => {
      await storage.put(`b/c/d${index}`, from('x'));
      await storage.delete(`b/c/d${index}`);
    }),
  );
  t.same(await storage.list('b/'), { objects: [], next: null });
});

t.test('a listing pages through all keys in their order', async (t) => {
  const { root, storage } = await freshStorage(t);
  // Folder names that sort differently with and without the slash behind them.
  const keys = ['p/a', 'p/a-b/1', 'p/a.c', 'p/a0/x', 'p/b/1', 'p/b/10', 'p/b/2', 'p/c', 'q/1'];
  for (const key of keys) await storage.put(key, from(key));
  await writeFile(path.join(root, '.incoming', 'half'), 'x');
  const seen: string[] = [];
  let after: string | null = '';
  let pages = 0;
  while (after !== null) {
    const page: Awaited<ReturnType<Storage['list']>> = await storage.list('p/', { after, limit: 3 });
    seen.push(...page.objects.map((object) => object.key));
    t.ok(page.objects.every((object) => object.size === object.key.length));
    after = page.next;
    pages += 1;
  }
  t.same(seen, keys.filter((key) => key.startsWith('p/')).sort());
  t.equal(pages, 3);
});

t.test('what a crash cut off is removed once it is old', async (t) => {
  const { root, storage } = await freshStorage(t);
  t.equal(await storage.removeAbandoned(0), 0, 'before the root exists');
  await storage.put('a/b', from('x'));
  const old = path.join(root, '.incoming', 'old');
  await writeFile(old, 'x');
  await utimes(old, new Date(0), new Date(0));
  await writeFile(path.join(root, '.incoming', 'under-way'), 'x');
  t.equal(await storage.removeAbandoned(3_600_000), 1);
  t.same(await readdir(path.join(root, '.incoming')), ['under-way']);
  t.equal(await storage.stat('a/b').then((stats) => stats?.size), 1);
});

t.test('an upload gets its media type from its bytes', async (t) => {
  const { storage } = await freshStorage(t);
  t.same(await receiveFile(storage, 'a/b', from('a,b\n1,2\n'), { fileName: 'x.csv' }), {
    size: 8,
    sha256: sha256('a,b\n1,2\n'),
    mediaType: 'text/csv',
  });
  await t.rejects(
    receiveFile(storage, 'a/c', from('too long'), { fileName: 'x.csv', maxBytes: 3 }),
    StorageTooLargeError,
  );
});

t.test('a storage URL that no driver serves is refused', async (t) => {
  t.throws(() => openStorage('ftp://host/x'), /no storage driver for ftp:/);
});
