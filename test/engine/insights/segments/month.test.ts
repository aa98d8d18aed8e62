import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { factsSha256, type StoredFact, withdrawnFact } from '../../../../engine/insights/facts.ts';
import {
  READ_LIMITS,
  readMonth,
  type StoredSegment,
  writeSegment,
} from '../../../../engine/insights/segments/index.ts';
import { openStorage } from '../../../../engine/storage/index.ts';
import { openFolder } from '../../../support/folders.ts';
import { COLUMNS, order, orders } from './support.ts';

const storage = openStorage(pathToFileURL(await openFolder(t)).href);

async function store(key: string, facts: readonly StoredFact[]): Promise<StoredSegment> {
  const { bytes, sha256, rows } = await writeSegment(COLUMNS, facts);
  const { size } = await storage.put(key, Readable.from([bytes]));
  return { key, size, sha256, rows };
}

const later = { collectedAt: Date.UTC(2026, 3, 2), unit: 'unit-2' };
const paid = order(2, { revision: Date.UTC(2027, 0, 1) }, later);
const gone = withdrawnFact(order(3), 'not_found', later);
const older = order(4, { revision: 1 }, later);

async function storeTwo(): Promise<[StoredSegment, StoredSegment]> {
  const first = await store('facts/1.parquet', orders(0, 300));
  return [first, await store('facts/2.parquet', [paid, gone, older, order(300)])];
}

t.test('of each key the newest counts, in whatever order the segments come', async (t) => {
  const [first, second] = await storeTwo();
  const expected = [...orders(0, 2), paid, gone, ...orders(4, 301)];
  for (const segments of [
    [first, second],
    [second, first],
  ]) {
    const facts = await readMonth(storage, segments, COLUMNS);
    t.strictSame(
      [...facts.keys()].sort().map((key) => facts.get(key)),
      expected,
    );
    t.equal(factsSha256(facts.values()), factsSha256([...orders(0, 301), paid, gone, older]));
  }
  t.equal((await readMonth(storage, [], COLUMNS)).size, 0);
});

t.test('the limits hold for all segments together, and before one is read', async (t) => {
  const [first, second] = await storeTwo();
  const unread = { get: () => Promise.reject(new Error('read')) };
  const all = { rows: first.rows + second.rows, bytes: first.size + second.size };
  for (const limit of ['rows', 'bytes'] as const) {
    const limits = { ...READ_LIMITS, [limit]: all[limit] - 1 };
    await t.rejects(readMonth(unread, [first, second], COLUMNS, { limits }), { name: 'SegmentTooLargeError', limit });
  }
  t.equal((await readMonth(storage, [first, second], COLUMNS, { limits: all })).size, 301);
});

t.test('a file that is gone or not what was recorded is no answer', async (t) => {
  const [first, second] = await storeTwo();
  const missing = { ...second, key: 'facts/3.parquet' };
  await t.rejects(readMonth(storage, [first, missing], COLUMNS), { name: 'StorageBrokenError', reason: 'missing' });
  await storage.put('facts/4.parquet', Readable.from([(await writeSegment(COLUMNS, orders(0, 4))).bytes]));
  const changed = { ...second, key: 'facts/4.parquet' };
  await t.rejects(readMonth(storage, [first, changed], COLUMNS), { name: 'StorageBrokenError', reason: 'changed' });
  const fewer = { ...second, rows: second.rows - 1 };
  await t.rejects(readMonth(storage, [fewer], COLUMNS), { name: 'SegmentDamagedError', reason: 'unreadable' });
});

t.test('a reader that is told to stop stops', async (t) => {
  const [first] = await storeTwo();
  const signal = AbortSignal.abort(new Error('enough'));
  await t.rejects(readMonth(storage, [first], COLUMNS, { signal }), { message: 'enough' });
});
