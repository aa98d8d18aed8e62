import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import type { Test } from 'tap';
import {
  organizationPrefix,
  receiveFile,
  runOutputKey,
  type Storage,
  StorageMissingError,
  StorageTooLargeError,
} from '../../../engine/storage/index.ts';
import { until } from '../../support/wait.ts';

/** An empty storage, and what a test has to know beyond its interface. */
export type TestedStorage = Readonly<{
  storage: Storage;
  /** How much lies there of puts that have not ended. */
  unfinished: () => Promise<number>;
}>;

export type OpenPlace = (t: Test) => Promise<TestedStorage>;

export const MiB = 1024 * 1024;
export const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex');
export const from = (content: string) => Readable.from([Buffer.from(content)]);

/** So many MiB, a piece at a time. */
export async function* mebibytes(count: number): AsyncGenerator<Buffer> {
  for (let index = 0; index < count; index += 1) yield Buffer.alloc(MiB, index);
}

/** All keys below the prefix, page by page. */
export async function allKeys(storage: Storage, prefix: string, limit = 200): Promise<string[][]> {
  const pages: string[][] = [];
  let after: string | null = '';
  while (after !== null) {
    const page: Awaited<ReturnType<Storage['list']>> = await storage.list(prefix, { after, limit });
    pages.push(page.objects.map((object) => object.key));
    after = page.next;
  }
  return pages;
}

/** Every method of a storage, called once. */
export function everyCall(storage: Storage): Record<string, () => Promise<unknown>> {
  return {
    put: () => storage.put('a/b', from('x')),
    large: () => storage.put('a/b', mebibytes(6)),
    get: () => storage.get('a/b'),
    stat: () => storage.stat('a/b'),
    delete: () => storage.delete('a/b'),
    deletePrefix: () => storage.deletePrefix('a/'),
    list: () => storage.list('a/'),
    removeAbandoned: () => storage.removeAbandoned(0),
    check: () => storage.check(),
  };
}

function wholeObjects(t: Test, open: OpenPlace): void {
  t.test('what is put comes back whole and hashed, whatever its size', async (t) => {
    const { storage, unfinished } = await open(t);
    for (const size of [0, 1, 300_000, 5 * MiB - 1, 5 * MiB, 5 * MiB + 1, 12 * MiB + 345]) {
      const bytes = randomBytes(size);
      const key = runOutputKey(randomUUID(), randomUUID());
      const pieces = [bytes.subarray(0, 1), bytes.subarray(1, 70_000), bytes.subarray(70_000)];
      t.same(await storage.put(key, Readable.from(pieces)), { size, sha256: sha256(bytes) });
      t.ok(bytes.equals(await buffer(await storage.get(key))), `${size} bytes`);
      t.same(await storage.stat(key), { size });
    }
    t.equal(await unfinished(), 0);
  });

  t.test('a put over an object replaces it in one step, and readers keep what they opened', async (t) => {
    const { storage } = await open(t);
    await storage.put('a/b', from('old text'));
    const opened = await storage.get('a/b');
    await storage.put('a/b', from('new'));
    t.equal(await text(opened), 'old text');
    t.equal(await text(await storage.get('a/b')), 'new');
    t.same(await storage.stat('a/b'), { size: 3 });
  });

  t.test('of puts of one key at once one wins, whole', async (t) => {
    const { storage, unfinished } = await open(t);
    const contents = [Buffer.alloc(6 * MiB, 'a'), Buffer.alloc(7 * MiB, 'b'), Buffer.from('c')];
    const stored = await Promise.all(contents.map((content) => storage.put('a/b', Readable.from([content]))));
    t.same(
      stored,
      contents.map((content) => ({ size: content.length, sha256: sha256(content) })),
    );
    const left = await buffer(await storage.get('a/b'));
    t.ok(contents.some((content) => content.equals(left)));
    t.equal(await unfinished(), 0);
  });

  t.test('until a put has ended nobody sees any of it', async (t) => {
    const { storage, unfinished } = await open(t);
    const source = new PassThrough();
    const put = storage.put('a/b', source);
    source.write(Buffer.alloc(11 * MiB));
    await until('some of it is stored', async () => (await unfinished()) > 0);
    t.equal(await storage.stat('a/b'), null);
    await t.rejects(storage.get('a/b'), StorageMissingError);
    t.same(await storage.list('a/'), { objects: [], next: null });
    source.end('end');
    t.equal((await put).size, 11 * MiB + 3);
    t.same(await storage.stat('a/b'), { size: 11 * MiB + 3 });
  });

  t.test('keys differ in every character that they may have', async (t) => {
    const { storage } = await open(t);
    const keys = ['a/b', 'a/B', 'a/b.', 'a/b..c', 'a/b-', 'a/b_', 'a/-b', 'a/_', `a/${'x'.repeat(128)}`, '-/0/_.-'];
    for (const key of keys) await storage.put(key, from(key));
    for (const key of keys) t.equal(await text(await storage.get(key)), key);
    t.same((await allKeys(storage, 'a/')).flat(), keys.filter((key) => key.startsWith('a/')).sort());
  });

  t.test('an upload gets its media type from its bytes', async (t) => {
    const { storage } = await open(t);
    t.same(await receiveFile(storage, 'a/b', from('a,b\n1,2\n'), { fileName: 'x.csv' }), {
      size: 8,
      sha256: sha256('a,b\n1,2\n'),
      mediaType: 'text/csv',
      textProblem: null,
    });
    const limits = { fileName: 'x.csv', maxBytes: 3 };
    await t.rejects(receiveFile(storage, 'a/c', from('too long'), limits), StorageTooLargeError);
  });
}

function reading(t: Test, open: OpenPlace): void {
  t.test('ranges are inclusive at both ends, and empty beyond the end', async (t) => {
    const { storage } = await open(t);
    await storage.put('a/b', from('0123456789'));
    const read = async (start?: number, end?: number) =>
      text(
        await storage.get('a/b', { ...(start === undefined ? {} : { start }), ...(end === undefined ? {} : { end }) }),
      );
    t.equal(await read(2, 4), '234');
    t.equal(await read(7), '789');
    t.equal(await read(undefined, 0), '0');
    t.equal(await read(0, 9), '0123456789');
    t.equal(await read(8, 99), '89');
    t.equal(await read(10), '');
    t.equal(await read(10, 12), '');
    await t.rejects(read(4, 2), RangeError);
    await storage.put('a/empty', from(''));
    t.equal(await text(await storage.get('a/empty', { start: 0, end: 0 })), '');
  });

  t.test('what is missing is a typed error before any byte, and null for stat', async (t) => {
    const { storage } = await open(t);
    await t.rejects(storage.get('a/b'), StorageMissingError, 'before there is anything');
    await storage.put('a/b/c', from('x'));
    await t.rejects(storage.get('a/z'), StorageMissingError);
    await t.rejects(storage.get('a/b'), StorageMissingError, 'a folder is no object');
    await t.rejects(storage.get('a/b/c/d'), StorageMissingError, 'nor is what lies below an object');
    t.equal(await storage.stat('a/z'), null);
    t.equal(await storage.stat('a/b'), null);
    await storage.delete('a/z');
    await storage.delete('nowhere/at/all');
    await storage.delete('a/b/c');
    await storage.delete('a/b/c');
    t.equal(await storage.stat('a/b/c'), null);
  });

  t.test('a reader that leaves or is aborted ends the reading', async (t) => {
    const { storage } = await open(t);
    await storage.put('a/b', mebibytes(20));
    const left = await storage.get('a/b');
    for await (const _ of left) break;
    t.ok(left.destroyed);
    const controller = new AbortController();
    const aborted = await storage.get('a/b', { signal: controller.signal });
    await once(aborted, 'readable');
    controller.abort(new Error('gone'));
    await t.rejects(buffer(aborted), { name: 'AbortError' });
    t.ok(aborted.destroyed);
    await t.rejects(storage.get('a/b', { signal: controller.signal }), { message: 'gone' });
  });
}

function failures(t: Test, open: OpenPlace): void {
  t.test('too many bytes end the put at once, leave nothing, and leave the source alive', async (t) => {
    const { storage, unfinished } = await open(t);
    for (const [piece, maxBytes] of [
      [1000, 10_000],
      [100_000, 11 * MiB],
    ] as const) {
      let sent = 0;
      const endless = new Readable({
        read() {
          sent += piece;
          this.push(Buffer.alloc(piece));
        },
      });
      t.teardown(() => endless.destroy());
      await t.rejects(storage.put('a/b', endless, { maxBytes }), StorageTooLargeError);
      t.ok(sent < maxBytes + MiB, `read ${sent} bytes of an endless source`);
      t.notOk(endless.destroyed, 'the handler can still respond to the request');
      t.equal(await storage.stat('a/b'), null);
      t.equal(await unfinished(), 0);
    }
    const exactly = await storage.put('a/b', from('x'.repeat(10_000)), { maxBytes: 10_000 });
    t.equal(exactly.size, 10_000, 'exactly at the limit');
  });

  t.test('a request whose upload is too large can still get a response', async (t) => {
    const { storage } = await open(t);
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
    const { storage, unfinished } = await open(t);
    for (const size of [10, 12 * MiB]) {
      const silent = new PassThrough();
      silent.write(Buffer.alloc(size));
      const controller = new AbortController();
      const put = storage.put('a/b', silent, { signal: controller.signal });
      const ended = t.rejects(put, { message: 'gone' });
      // What fits into one request is not sent before it is whole.
      if (size > MiB) await until('some of it is stored', async () => (await unfinished()) > 0);
      controller.abort(new Error('gone'));
      await ended;
      t.equal(await storage.stat('a/b'), null);
      t.equal(await unfinished(), 0);
      await t.rejects(storage.put('a/b', from('x'), { signal: controller.signal }), { message: 'gone' });
    }
  });

  t.test('a source that fails fails the put, and leaves nothing', async (t) => {
    const { storage, unfinished } = await open(t);
    async function* broken(size: number) {
      yield Buffer.alloc(size);
      throw new Error('the line went dead');
    }
    for (const size of [10, 12 * MiB]) {
      await t.rejects(storage.put('a/b', Readable.from(broken(size))), { message: 'the line went dead' });
      await t.rejects(storage.put('a/b', broken(size)), { message: 'the line went dead' });
    }
    t.equal(await storage.stat('a/b'), null);
    t.equal(await unfinished(), 0);
  });

  t.test('keys and prefixes that we would not make are refused', async (t) => {
    const { storage } = await open(t);
    const bad = ['', '/', '/etc/passwd', '..', 'a/../b', 'a//b', 'a/', './a', '.incoming/x', 'a/.hidden', 'a\\b'];
    for (const key of [...bad, 'a\0b', 'a b', 'ä', 'x'.repeat(600), `${'x'.repeat(200)}/a`]) {
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
}

function prefixes(t: Test, open: OpenPlace): void {
  t.test('a prefix is deleted in batches, and only it', async (t) => {
    const { storage } = await open(t);
    const [mine, other] = [randomUUID(), randomUUID()];
    for (let run = 0; run < 3; run += 1) {
      const runId = randomUUID();
      for (let index = 0; index < 4; index += 1) await storage.put(runOutputKey(mine, runId), from('x'));
    }
    const kept = runOutputKey(other, randomUUID());
    await storage.put(kept, from('kept'));
    await storage.put(`${organizationPrefix(mine).slice(0, -1)}0/x`, from('kept too'));
    const counts: number[] = [];
    for (let done = false; !done; ) {
      const step = await storage.deletePrefix(organizationPrefix(mine), { batch: 5 });
      counts.push(step.deleted);
      done = step.done;
    }
    t.same(counts, [5, 5, 2]);
    t.equal(await text(await storage.get(kept)), 'kept');
    t.same((await allKeys(storage, 'organizations/')).flat().length, 2, 'a prefix is whole segments');
    t.same(await storage.deletePrefix(organizationPrefix(mine)), { deleted: 0, done: true }, 'again is fine');
    const signal = AbortSignal.abort(new Error('stopping'));
    await t.rejects(storage.deletePrefix('organizations/', { signal }), { message: 'stopping' });
  });

  t.test('two deletions and puts at once end well', async (t) => {
    const { storage } = await open(t);
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
    t.ok(first + second >= 40, 'each object counts');
    t.same(await storage.list(prefix), { objects: [], next: null });
    await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        await storage.put(`b/c/d${index}`, from('x'));
        await storage.delete(`b/c/d${index}`);
      }),
    );
    t.same(await storage.list('b/'), { objects: [], next: null });
  });

  t.test('a listing pages through all keys in their order, 200 a page', async (t) => {
    const { storage } = await open(t);
    // Folder names that sort differently with and without the slash behind them.
    const keys = ['p/a', 'p/a-b/1', 'p/a.c', 'p/a0/x', 'p/B/1', 'p/b/1', 'p/b/10', 'p/b/2', 'p/c', 'q/1'];
    for (const key of keys) await storage.put(key, from(key));
    const { objects } = await storage.list('p/');
    t.ok(objects.every((object) => object.size === object.key.length));
    const pages = await allKeys(storage, 'p/', 3);
    t.same(pages.flat(), keys.filter((key) => key.startsWith('p/')).sort());
    t.equal(pages.length, 3);
    const many = Array.from({ length: 205 }, (_, index) => `m/${String(index).padStart(3, '0')}`);
    await Promise.all(many.map((key) => storage.put(key, from('x'))));
    t.same(await allKeys(storage, 'm/'), [many.slice(0, 200), many.slice(200)]);
    t.same(await storage.deletePrefix('m/'), { deleted: 200, done: false });
    t.same(await storage.deletePrefix('m/'), { deleted: 5, done: true });
  });

  t.test('a storage that works says so', async (t) => {
    const { storage, unfinished } = await open(t);
    await storage.check();
    t.equal(await unfinished(), 0);
    t.equal(await storage.removeAbandoned(0), 0);
  });
}

/** What every driver does alike: registers the tests of `engine/storage/storage.ts` against the places of `open`. */
export function storageContract(t: Test, open: OpenPlace): void {
  wholeObjects(t, open);
  reading(t, open);
  failures(t, open);
  prefixes(t, open);
}
