import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { checkVerified, openStorage, openVerified, readVerified, verifying } from '../../../engine/storage/index.ts';
import { openFolder } from '../../support/folders.ts';

const storage = openStorage(pathToFileURL(await openFolder(t)).href);
const key = 'a/b';

function recorded(bytes: Uint8Array) {
  return { key, size: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
}

/** What of `found` passes where `kept` was recorded, in these chunks. */
async function passed(kept: Buffer, found: Buffer, chunk: number): Promise<{ bytes: number; reason?: string }> {
  const chunks = Array.from({ length: Math.ceil(found.length / chunk) }, (_, index) =>
    found.subarray(index * chunk, (index + 1) * chunk),
  );
  let bytes = 0;
  try {
    for await (const part of Readable.from(chunks).compose(verifying(recorded(kept)))) bytes += part.length;
    return { bytes };
  } catch (error) {
    return { bytes, reason: (error as { reason: string }).reason };
  }
}

t.test('whole bytes pass, in any chunks', async (test) => {
  const bytes = randomBytes(10_000);
  for (const chunk of [1_000, 10_000, 3_333]) test.same(await passed(bytes, bytes, chunk), { bytes: 10_000 });
  test.same(await passed(Buffer.alloc(0), Buffer.alloc(0), 1), { bytes: 0 });
  const stream = Readable.from([bytes]).pipe(verifying(recorded(bytes)));
  test.ok((await buffer(stream)).equals(bytes));
});

t.test('of changed bytes the last never pass', async (test) => {
  const bytes = randomBytes(10_000);
  const changed = Buffer.from(bytes);
  changed[0] = (changed[0] ?? 0) ^ 1;
  const found: Record<string, Buffer> = {
    changed,
    cut: bytes.subarray(0, 9_999),
    empty: Buffer.alloc(0),
    longer: Buffer.concat([bytes, Buffer.from('x')]),
  };
  for (const [name, other] of Object.entries(found)) {
    for (const chunk of [1_000, 20_000]) {
      const result = await passed(bytes, other, chunk);
      test.equal(result.reason, 'changed', name);
      test.ok(result.bytes < bytes.length, name);
    }
  }
});

t.test('a file is read whole and as it was, or not at all', async (test) => {
  const bytes = Buffer.from('the plan');
  const file = recorded(bytes);
  await test.rejects(readVerified(storage, file), { name: 'StorageBrokenError', reason: 'missing' });
  await storage.put(key, Readable.from([bytes]));
  test.ok((await readVerified(storage, file)).equals(bytes));
  await storage.put(key, Readable.from([Buffer.from('the palm')]));
  await test.rejects(checkVerified(storage, file), { name: 'StorageBrokenError', reason: 'changed' });
  await storage.put(key, Readable.from([Buffer.from('the plan and more')]));
  await test.rejects(checkVerified(storage, file), { name: 'StorageBrokenError', reason: 'changed' });
  await storage.put(key, Readable.from([]));
  await test.rejects(checkVerified(storage, file), { name: 'StorageBrokenError', reason: 'changed' });
});

t.test('a file that is read as a stream ends in an error where it is not what was recorded', async (test) => {
  const bytes = randomBytes(300_000);
  const file = recorded(bytes);
  await storage.delete(key);
  await test.rejects(openVerified(storage, file), { name: 'StorageBrokenError', reason: 'missing' });
  await storage.put(key, Readable.from([bytes]));
  test.ok((await buffer(await openVerified(storage, file))).equals(bytes));
  await storage.put(key, Readable.from([Buffer.concat([bytes.subarray(1), Buffer.from('x')])]));
  await test.rejects(buffer(await openVerified(storage, file)), { name: 'StorageBrokenError', reason: 'changed' });
  const stop = new AbortController();
  await storage.put(key, Readable.from([bytes]));
  const stream = await openVerified(storage, file, stop.signal);
  stop.abort(new Error('enough'));
  await test.rejects(buffer(stream));
  const left = await openVerified(storage, file);
  for await (const _ of left) break;
  test.ok(left.destroyed, 'who leaves early leaves nothing open');
});
