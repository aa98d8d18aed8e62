import { createHash } from 'node:crypto';
import fc from 'fast-check';
import t from 'tap';
import { EVIDENCE, FactRefusedError, type StoredFact, withdrawnFact } from '../../../../engine/insights/facts.ts';
import {
  READ_LIMITS,
  type ReadOptions,
  readSegment,
  SegmentTooLargeError,
  writeSegment,
} from '../../../../engine/insights/segments/index.ts';
import type { Columns } from '../../../../engine/providers/dataset.ts';
import { COLUMNS, order, orders } from './support.ts';

const digestOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** All facts of a file that is what was recorded. */
async function read(bytes: Uint8Array, columns: Columns = COLUMNS, options?: ReadOptions): Promise<StoredFact[]> {
  const facts: StoredFact[] = [];
  for await (const some of readSegment(bytes, columns, digestOf(bytes), options)) facts.push(...some);
  return facts;
}

const byKey = (left: StoredFact, right: StoredFact) => (left.key < right.key ? -1 : 1);

const line = fc
  .string({ unit: 'grapheme', maxLength: 30 })
  .filter((text) => text.isWellFormed() && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text));
const nullable = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null });
const march = fc.integer({ min: Date.UTC(2026, 2, 1), max: Date.UTC(2026, 3, 1) - 1 });
const times = fc.integer({ min: 0, max: 253_402_300_799_999 });
const facts: fc.Arbitrary<StoredFact> = fc
  .record({
    key: line.filter((text) => text !== ''),
    effectiveAt: times,
    contentAt: march,
    revision: nullable(fc.maxSafeInteger()),
    collectedAt: times,
    unit: fc.uuid(),
    evidence: nullable(fc.constantFrom(...EVIDENCE)),
    values: fc.record({
      status: nullable(line),
      total: nullable(fc.constantFrom('0', '-1.5', '99999999999999999999.999999999999999999')),
      items: nullable(fc.maxSafeInteger()),
      paid: nullable(fc.boolean()),
      refundedAt: nullable(times),
      onDay: nullable(fc.constantFrom('2026-03-01', '1999-12-31')),
    }),
  })
  .map((fact) => ({ ...fact, values: { ...fact.values }, deleted: fact.evidence !== null }));

t.test('what is written is read, whatever it is', async (t) => {
  const lists = fc.uniqueArray(facts, { minLength: 1, maxLength: 40, selector: ({ key }) => key });
  const property = fc.asyncProperty(lists, async (list) => {
    const { bytes, sha256, rows, minAt, maxAt, month } = await writeSegment(COLUMNS, list);
    t.strictSame(await read(bytes), [...list].sort(byKey));
    t.equal(rows, list.length);
    t.equal(month, '2026-03');
    t.equal(minAt, Math.min(...list.map(({ effectiveAt }) => effectiveAt)));
    t.equal(maxAt, Math.max(...list.map(({ effectiveAt }) => effectiveAt)));
    t.equal(sha256, digestOf(bytes));
  });
  await fc.assert(property, { seed: 20_261_130, numRuns: 50 });
  const marked = order(0, { key: '\ufeffmarked' });
  t.strictSame(await read((await writeSegment(COLUMNS, [marked])).bytes), [marked]);
});

t.test('many rows come in turns of at most 128, and other work gets its turn between them', async (t) => {
  const written = await writeSegment(COLUMNS, orders(0, 3_000).reverse());
  t.equal(written.rows, 3_000);
  const sizes: number[] = [];
  const keys: string[] = [];
  let turns = 0;
  const count = () => {
    turns += 1;
    immediate = setImmediate(count);
  };
  let immediate = setImmediate(count);
  // From a pool, as bytes out of storage may be.
  const pooled = Buffer.concat([Buffer.from('before'), written.bytes, Buffer.from('after')]);
  for await (const some of readSegment(pooled.subarray(6, 6 + written.bytes.length), COLUMNS, written.sha256)) {
    sizes.push(some.length);
    keys.push(...some.map(({ key }) => key));
  }
  clearImmediate(immediate);
  t.strictSame(
    keys,
    orders(0, 3_000).map(({ key }) => key),
  );
  t.ok(sizes.every((size) => size > 0 && size <= 128));
  t.ok(turns >= sizes.length - 1, `${turns} turns, ${sizes.length} times facts`);
});

t.test('the same facts make the same bytes, and of one key the newest is written', async (t) => {
  const one = await writeSegment(COLUMNS, orders(0, 50));
  const again = await writeSegment(COLUMNS, orders(0, 50).reverse());
  t.equal(again.sha256, one.sha256);
  const newer = order(3, { revision: Date.UTC(2027, 0, 1) }, { unit: 'unit-2' });
  const gone = withdrawnFact(order(4), 'absent', { collectedAt: Date.UTC(2026, 3, 2), unit: 'unit-2' });
  const both = await writeSegment(COLUMNS, [newer, gone, ...orders(0, 6)]);
  t.strictSame(await read(both.bytes), [...orders(0, 3), newer, gone, order(5)]);
});

t.test('only facts of the dataset and of one month are written', async (t) => {
  await t.rejects(writeSegment(COLUMNS, []), RangeError);
  await t.rejects(writeSegment(COLUMNS, [order(1), order(2, { contentAt: 0 })]), RangeError);
  await t.resolves(writeSegment(COLUMNS, [order(1), order(2, { contentAt: order(1).contentAt, effectiveAt: 0 })]));
  const planted = { ...order(1), values: { ...order(1).values, email: 'ada@example.com' } };
  await t.rejects(writeSegment(COLUMNS, [planted]), FactRefusedError);
  const long = { ...order(1), values: { ...order(1).values, status: 'x'.repeat(201) } };
  await t.rejects(writeSegment(COLUMNS, [long]), { name: 'FactRefusedError', column: 'status' });
  await t.rejects(writeSegment({ ...COLUMNS, unit: 'text' }, [order(1)]), TypeError);
});

t.test('a column that an older schema lacks is null, and one that it had is left', async (t) => {
  const { status: _, ...older } = COLUMNS;
  const { bytes } = await writeSegment(
    older,
    orders(0, 5).map((fact) => {
      const { status: __, ...values } = fact.values;
      return { ...fact, values };
    }),
  );
  t.strictSame(
    await read(bytes),
    orders(0, 5).map((fact) => ({ ...fact, values: { ...fact.values, status: null } })),
  );
  const onlyItems = await read((await writeSegment(COLUMNS, orders(0, 5))).bytes, { items: 'count' });
  t.strictSame(
    onlyItems.map(({ values }) => values),
    orders(0, 5).map(({ values }) => ({ items: values['items'] })),
  );
});

t.test('more than the limits is refused before it is read', async (t) => {
  const { bytes } = await writeSegment(COLUMNS, orders(0, 100));
  await t.rejects(read(bytes, COLUMNS, { limits: { ...READ_LIMITS, rows: 99 } }), {
    name: 'SegmentTooLargeError',
    limit: 'rows',
    allowed: 99,
  });
  const almost = { ...READ_LIMITS, bytes: bytes.length - 1 };
  await t.rejects(read(bytes, COLUMNS, { limits: almost }), { name: 'SegmentTooLargeError', limit: 'bytes' });
  t.equal((await read(bytes, COLUMNS, { limits: { bytes: bytes.length, rows: 100 } })).length, 100);
  t.same(READ_LIMITS, { bytes: 67_108_864, rows: 250_000 });
  const large = readSegment(new Uint8Array(READ_LIMITS.bytes + 1), COLUMNS, 'not even hashed');
  await t.rejects(large.next(), SegmentTooLargeError);
});

t.test('a file that is not what was written is told by its digest', async (t) => {
  const { bytes, sha256 } = await writeSegment(COLUMNS, orders(0, 100));
  const changed = Uint8Array.from(bytes);
  changed[50] = (changed[50] ?? 0) ^ 1;
  for (const file of [changed, bytes.subarray(0, -1), new Uint8Array(0)]) {
    const reading = readSegment(file, COLUMNS, sha256).next();
    await t.rejects(reading, { name: 'SegmentDamagedError', reason: 'changed' });
  }
});

t.test('what was recorded as a segment and is none is an error of the file', async (t) => {
  const { bytes } = await writeSegment(COLUMNS, orders(0, 60));
  const others = [
    new Uint8Array(0),
    Buffer.from('PAR1PAR1'),
    bytes.subarray(0, -1),
    bytes.subarray(8),
    new Uint8Array(100),
  ];
  for (const file of others) await t.rejects(read(file), { name: 'SegmentDamagedError', reason: 'unreadable' });
});

t.test('a file of another dataset is refused', async (t) => {
  const { bytes } = await writeSegment(COLUMNS, orders(0, 5));
  for (const columns of [
    { items: 'text' },
    { status: 'count' },
    { refundedAt: 'count' },
    { paid: 'time' },
  ] satisfies Columns[]) {
    await t.rejects(read(bytes, columns), { name: 'SegmentDamagedError', reason: 'unreadable' });
  }
});

t.test('a reader that is told to stop stops', async (t) => {
  const { bytes } = await writeSegment(COLUMNS, orders(0, 500));
  const stop = new AbortController();
  const seen: number[] = [];
  const reading = (async () => {
    for await (const some of readSegment(bytes, COLUMNS, digestOf(bytes), { signal: stop.signal })) {
      seen.push(some.length);
      stop.abort(new Error('enough'));
    }
  })();
  await t.rejects(reading, { message: 'enough' });
  t.strictSame(seen, [128]);
});
