import fc from 'fast-check';
import t from 'tap';
import {
  checkColumns,
  compareAge,
  contentMonth,
  FactRefusedError,
  factsSha256,
  keepNewest,
  type StoredFact,
  saysTheSame,
  storedFact,
  withdrawnFact,
} from '../../../engine/insights/facts.ts';
import type { Columns, Fact, FactValue } from '../../../engine/providers/dataset.ts';

const COLUMNS: Columns = {
  status: 'text',
  total: 'amount',
  items: 'count',
  paid: 'flag',
  refundedAt: 'time',
  on: 'day',
};
const VALUES = { status: 'paid', total: '19.9', items: 2, paid: true, refundedAt: null, on: '2026-02-28' };
const FACT: Fact = { key: 'order:1', effectiveAt: Date.UTC(2026, 1, 28), revision: 7, values: VALUES };
const COLLECTED = { collectedAt: Date.UTC(2026, 2, 1), unit: 'unit-1' };

const refusal = (change: Partial<Fact>, values: Record<string, unknown> = {}) => {
  try {
    storedFact(COLUMNS, { ...FACT, ...change, values: { ...VALUES, ...values } as Fact['values'] }, COLLECTED);
    return undefined;
  } catch (error) {
    if (!(error instanceof FactRefusedError)) throw error;
    return error;
  }
};

t.test('a fact is stored with all that its dataset says', (t) => {
  t.strictSame(storedFact(COLUMNS, { ...FACT, values: { ...VALUES, total: '019.90' } }, COLLECTED), {
    key: 'order:1',
    effectiveAt: FACT.effectiveAt,
    contentAt: FACT.effectiveAt,
    revision: 7,
    ...COLLECTED,
    deleted: false,
    evidence: null,
    values: VALUES,
  });
  const gone = storedFact(COLUMNS, { ...FACT, contentAt: 5, deleted: 'gone' }, COLLECTED);
  t.match(gone, { contentAt: 5, deleted: true, evidence: 'gone' });
  t.end();
});

t.test('what fits no column is refused by its name, and its value kept out of the error', (t) => {
  const long = 'x'.repeat(201);
  const wrong: [string, unknown][] = [
    ...[long, 'two\nlines', 'nul\0', 'tab\t', '\u2028', '\ud800', 7, true].map((value): [string, unknown] => [
      'status',
      value,
    ]),
    ...['1e3', 'secret', 19.9, 1n, '100000000000000000000'].map((value): [string, unknown] => ['total', value]),
    ...[1.5, '2', 2 ** 53, Number.NaN].map((value): [string, unknown] => ['items', value]),
    ...['true', 1].map((value): [string, unknown] => ['paid', value]),
    ...[-1, 1.5, '2026-01-01', 253_402_300_800_000].map((value): [string, unknown] => ['refundedAt', value]),
    ...['2026-02-29', '2026-13-01', '26-01-01', '2026-01-01T00:00:00Z', ''].map((value): [string, unknown] => [
      'on',
      value,
    ]),
  ];
  for (const [column, value] of wrong) {
    const error = refusal({}, { [column]: value });
    t.equal(error?.column, column, `${column}: ${String(value)}`);
    if (String(value).length > 3) t.notOk(error?.message.includes(String(value)));
  }
  t.equal(refusal({}, { status: undefined })?.column, 'status');
  t.equal(refusal({}, { email: 'ada@example.com' })?.column, 'email');
  t.equal(refusal({}, { constructor: 'x' })?.column, 'constructor');
  t.equal(refusal({ key: 'k'.repeat(301) })?.column, 'key');
  t.equal(refusal({ key: '' })?.column, 'key');
  t.equal(refusal({ key: 'a\nb' })?.column, 'key');
  t.equal(refusal({ effectiveAt: Number.NaN })?.column, 'effective_at');
  t.equal(refusal({ contentAt: -1 })?.column, 'content_at');
  t.equal(refusal({ revision: 0.5 })?.column, 'revision');
  for (const [column, value] of Object.entries({ status: 'x'.repeat(200), items: -3, refundedAt: 0, total: null })) {
    t.equal(refusal({}, { [column]: value }), undefined, column);
  }
  t.equal(refusal({ key: 'k'.repeat(300), revision: null }), undefined);
  const { on: _, ...missing } = VALUES;
  t.throws(() => storedFact(COLUMNS, { ...FACT, values: missing }, COLLECTED), { message: 'on is missing' });
  t.end();
});

t.test('columns have names that are free', (t) => {
  t.doesNotThrow(() => checkColumns(COLUMNS));
  for (const name of ['key', 'Key', 'unit', '', 'a b', '1st', 'x"', '__proto__', 'x'.repeat(64)]) {
    t.throws(() => checkColumns(Object.fromEntries([[name, 'text']])), TypeError, name);
  }
  t.throws(() => checkColumns({ paidAt: 'time', paidat: 'time' }), TypeError);
  t.end();
});

t.test('a fact lies in its month by UTC', (t) => {
  t.equal(contentMonth(Date.UTC(2026, 2, 1)), '2026-03');
  t.equal(contentMonth(Date.UTC(2026, 2, 1) - 1), '2026-02');
  t.equal(contentMonth(0), '1970-01');
  t.equal(contentMonth(253_402_300_799_999), '9999-12');
  t.end();
});

const ages = fc.record({
  revision: fc.option(fc.nat(3)),
  collectedAt: fc.nat(3),
  unit: fc.constantFrom('a', 'b', 'c'),
});
const said = fc.record({
  key: fc.constantFrom('1', '2', '3', '10'),
  effectiveAt: fc.nat(2),
  status: fc.option(fc.constantFrom('paid', 'open')),
  deleted: fc.constantFrom(undefined, undefined, 'gone' as const),
});

/** Facts of which no two have one key and one age. */
const histories = fc
  .uniqueArray(fc.tuple(said, ages), {
    maxLength: 20,
    selector: ([{ key }, { revision, collectedAt, unit }]) => `${key} ${revision} ${collectedAt} ${unit}`,
  })
  .map((list) =>
    list.map(([{ key, effectiveAt, status, deleted }, { revision, collectedAt, unit }]) =>
      storedFact(
        { status: 'text' },
        { key, effectiveAt, revision, values: { status }, deleted },
        { collectedAt, unit },
      ),
    ),
  );

function newestOf(facts: readonly StoredFact[]): Map<string, StoredFact> {
  const newest = new Map<string, StoredFact>();
  for (const fact of facts) keepNewest(newest, fact);
  return newest;
}

t.test('which fact of a key counts depends on no order', (t) => {
  const property = fc.property(histories, (facts) => {
    const newest = newestOf(facts);
    t.same(new Map([...newestOf(facts.toReversed())].sort()), new Map([...newest].sort()));
    for (const fact of facts) {
      const counts = newest.get(fact.key) ?? fact;
      t.ok(counts === fact || compareAge(counts, fact) > 0);
      t.equal(compareAge(fact, counts), -compareAge(counts, fact) + 0);
    }
    return (
      factsSha256(facts) === factsSha256(facts.toReversed()) && factsSha256(facts) === factsSha256(newest.values())
    );
  });
  fc.assert(property, { seed: 20_261_130, numRuns: 300 });
  t.end();
});

t.test('the digest tells what a query sees from what it does not', (t) => {
  const fact = (change: Partial<StoredFact> = {}): StoredFact => ({
    ...storedFact(COLUMNS, FACT, COLLECTED),
    ...change,
  });
  const digest = factsSha256([fact()]);
  const same: StoredFact[][] = [
    [fact({ unit: 'unit-2', collectedAt: 1, revision: null, contentAt: 3 })],
    [fact({ values: { ...VALUES, added: null } })],
    [fact(), fact({ revision: 6, values: { ...VALUES, status: 'open' } })],
    [fact(), withdrawnFact(fact({ key: 'order:2' }), 'absent', COLLECTED)],
  ];
  for (const facts of same) t.equal(factsSha256(facts), digest);
  const { total: _, ...less } = VALUES;
  const others: StoredFact[][] = [
    [],
    [fact({ key: 'order:2' })],
    [fact({ effectiveAt: 1 })],
    [fact({ values: { ...VALUES, items: 3 } })],
    [fact({ values: { ...VALUES, items: '2' as FactValue } })],
    [fact({ values: less })],
    [fact(), fact({ key: 'order:2' })],
    [fact(), fact({ revision: 8, deleted: true, evidence: 'gone' })],
  ];
  for (const facts of others) t.not(factsSha256(facts), digest);
  t.equal(new Set(others.map(factsSha256)).size, others.length - 1, 'of these the first and the last say nothing');
  t.end();
});

t.test('a fact that is gone says only that', (t) => {
  const fact = storedFact(COLUMNS, FACT, COLLECTED);
  const later = { collectedAt: COLLECTED.collectedAt + 1, unit: 'unit-2' };
  const gone = withdrawnFact(fact, 'absent', later);
  t.ok(compareAge(gone, fact) > 0);
  t.equal(gone.contentAt, fact.contentAt);
  t.ok(Object.values(gone.values).every((value) => value === null));
  t.notOk(saysTheSame(fact, gone));
  t.ok(saysTheSame(gone, withdrawnFact(fact, 'gone', COLLECTED)));
  t.ok(saysTheSame(fact, { ...fact, ...later, revision: 9 }));
  t.notOk(saysTheSame(fact, { ...fact, key: 'order:2' }));
  t.end();
});
