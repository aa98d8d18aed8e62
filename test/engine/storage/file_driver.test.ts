import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { lstat, mkdir, mkdtemp, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import {
  openStorage,
  StorageMissingError,
  StorageUnavailableError,
  storagePlace,
} from '../../../engine/storage/index.ts';
import { openFolder } from '../../support/folders.ts';
import { mountSmallDisk, noSmallDisks } from '../../support/small_disk.ts';
import { from, MiB, mebibytes, storageContract } from './contract.ts';

const skip = await noSmallDisks();

async function freshStorage(test: Test) {
  const parent = await mkdtemp(path.join(tmpdir(), 'storage-test-'));
  test.teardown(() => rm(parent, { recursive: true, force: true }));
  const root = path.join(parent, 'files');
  const incoming = async () => (await readdir(path.join(root, '.incoming')).catch(() => [])).length;
  return { root, storage: openStorage(pathToFileURL(root).href), unfinished: incoming };
}

async function everyFile(root: string): Promise<string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => !entry.isDirectory()).map((entry) => path.join(entry.parentPath, entry.name));
}

storageContract(t, freshStorage);

t.test('files are for the owner of the process alone', async (t) => {
  const { root, storage } = await freshStorage(t);
  await storage.put('a/b/c', from('x'));
  const file = path.join(root, 'a/b/c');
  t.equal((await lstat(file)).mode & 0o777, 0o600);
  for (let folder = path.dirname(file); folder.startsWith(root); folder = path.dirname(folder)) {
    t.equal((await lstat(folder)).mode & 0o777, 0o700, folder);
  }
  t.same(await everyFile(root), [file], 'no temporary file is left');
  await storage.deletePrefix('a/');
  t.same(await readdir(root), ['.incoming'], 'empty folders are gone with their files');
});

t.test('a put holds no more of a file in memory than it is writing', async (t) => {
  const { storage } = await freshStorage(t);
  const before = process.memoryUsage().rss;
  let highest = before;
  await storage.put('a/b', mebibytes(256), {
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

t.test('symbolic links do not lead out of the root', async (t) => {
  const { root, storage, unfinished } = await freshStorage(t);
  const outside = path.join(path.dirname(root), 'outside');
  await mkdir(outside);
  await writeFile(path.join(outside, 'secret'), 'secret');
  await storage.put('a/b', from('x'));
  await symlink(outside, path.join(root, 'a', 'folder'));
  await symlink(path.join(outside, 'secret'), path.join(root, 'a', 'file'));
  await t.rejects(storage.get('a/folder/secret'), /symbolic link/);
  await t.rejects(storage.get('a/file'));
  const unavailable = { name: 'StorageUnavailableError', message: /symbolic link below the storage root/ };
  await t.rejects(storage.put('a/folder/new', from('x')), unavailable);
  await t.rejects(storage.put('a/folder/new/folders/too', from('x')), unavailable, 'and none is made behind it');
  await t.rejects(storage.delete('a/folder/secret'), unavailable);
  await t.rejects(storage.deletePrefix('a/folder/'), unavailable);
  await t.rejects(storage.list('a/folder/'), unavailable);
  await symlink(path.join(outside, 'nothing'), path.join(root, 'a', 'nowhere'));
  const noOrganization = { name: 'StorageUnavailableError', message: /has no place for/ };
  await t.rejects(storage.put('a/nowhere/new', from('x')), noOrganization);
  await t.rejects(storage.put('a/b/new', from('x')), noOrganization, 'a file in place of a folder');
  t.equal(await unfinished(), 0);
  t.same(await storage.list('a/'), { objects: [{ key: 'a/b', size: 1 }], next: null });
  t.same(await readdir(outside), ['secret']);
  t.same(await storage.deletePrefix('a/'), { deleted: 4, done: true }, 'the links go, what they point at stays');
  t.same(await readdir(outside), ['secret']);
});

t.test('what is no file in place of an object is not there, and holds up nobody', { timeout: 30_000 }, async (t) => {
  const { root, storage } = await freshStorage(t);
  await storage.put('a/b', from('x'));
  // More than there are threads that open files.
  const pipes = Array.from({ length: 8 }, (_, index) => `a/pipe${index}`);
  execFileSync(
    'mkfifo',
    pipes.map((key) => path.join(root, key)),
  );
  const server = createServer().listen(path.join(root, 'a', 'socket'));
  t.teardown(() => server.close());
  await once(server, 'listening');
  await Promise.all([...pipes, 'a/socket'].map((key) => t.rejects(storage.get(key), StorageMissingError)));
  t.equal(await text(await storage.get('a/b')), 'x');
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

t.test('two deletions at once count each file once', async (t) => {
  const { storage } = await freshStorage(t);
  for (let index = 0; index < 40; index += 1) await storage.put(`a/r${index % 5}/${index}`, from('x'));
  const steps = await Promise.all([storage.deletePrefix('a/'), storage.deletePrefix('a/')]);
  t.equal(steps[0].deleted + steps[1].deleted, 40);
});

t.test('what a crash cut off is removed once it is old, and never listed', async (t) => {
  const { root, storage } = await freshStorage(t);
  t.equal(await storage.removeAbandoned(0), 0, 'before the root exists');
  await storage.put('a/b', from('x'));
  const old = path.join(root, '.incoming', 'old');
  await writeFile(old, 'x');
  await utimes(old, new Date(0), new Date(0));
  await writeFile(path.join(root, '.incoming', 'under-way'), 'x');
  t.equal(await storage.removeAbandoned(3_600_000), 1);
  t.same(await readdir(path.join(root, '.incoming')), ['under-way']);
  t.same(await storage.list('a/'), { objects: [{ key: 'a/b', size: 1 }], next: null });
});

t.test('a place where no file can be made is unavailable, and says which', async (t) => {
  const { root } = await freshStorage(t);
  await writeFile(root, 'in the way');
  const storage = openStorage(pathToFileURL(path.join(root, 'below')).href);
  await t.rejects(storage.check(), StorageUnavailableError);
  await t.rejects(storage.put('a/b', from('x')), {
    name: 'StorageUnavailableError',
    message: new RegExp(`^no file can be made in ${root}/below: `),
  });
});

t.test(
  'on a full disk nothing is stored, what is stored stays, and it goes on when there is room',
  { skip },
  async (t) => {
    const disk = mountSmallDisk(t, await openFolder(t), 1, '700');
    const storage = openStorage(pathToFileURL(disk.folder).href);
    await storage.put('a/kept', from('kept'));
    await storage.check();
    disk.fill();
    const full = { name: 'StorageFullError', message: /^there is no room for files: ENOSPC/ };
    await t.rejects(storage.put('a/b', from('x'.repeat(5000))), full);
    await t.rejects(storage.put('c/d/e', from('x'.repeat(5000))), full);
    await t.rejects(storage.check(), full);
    t.equal(await text(await storage.get('a/kept')), 'kept');
    t.same(await readdir(path.join(disk.folder, '.incoming')), [], 'nothing is left of them');
    disk.empty();
    await storage.check();
    await storage.put('a/b', from('x'));
  },
);

t.test('a storage URL that no driver serves is refused', async (t) => {
  t.throws(() => openStorage('ftp://host/x'), /no storage driver for ftp:/);
  t.equal(storagePlace('file:///some/place'), '/some/place');
});
