import fc from 'fast-check';
import t from 'tap';
import { type Coverage, clipCoverage, intersectCoverage, layCoverage } from '../../../engine/insights/coverage.ts';
import { COVERAGE_STATES, type Covered } from '../../../engine/providers/dataset.ts';

const STEPS = 24;
const SEED = { seed: 20_261_130, numRuns: 500 };

const covered = fc
  .record({
    start: fc.nat(STEPS),
    length: fc.nat(6),
    state: fc.constantFrom(...COVERAGE_STATES),
    reason: fc.option(fc.constantFrom('sampled', 'late'), { nil: undefined }),
  })
  .map(({ start, length, state, reason }): Covered => {
    const end = Math.min(start + length, STEPS);
    return reason === undefined ? { start, end, state } : { start, end, state, reason };
  });
const news = fc.array(covered, { maxLength: 8 });
const coverages = news.map((list) => layCoverage([], list));

/** What is said of each step of time: the oracle. */
function steps(coverage: Coverage): (string | undefined)[] {
  return Array.from({ length: STEPS }, (_, step) => {
    const said = coverage.filter(({ start, end }) => start <= step && step < end);
    return said.length === 0 ? undefined : said.map(({ state, reason }) => `${state} ${reason}`).join(' and ');
  });
}

function isInForm(coverage: Coverage): boolean {
  return coverage.every(({ start, end, state, reason }, index) => {
    const next = coverage[index + 1];
    if (start >= end) return false;
    if (next === undefined) return true;
    return end < next.start || (end === next.start && (state !== next.state || reason !== next.reason));
  });
}

t.test('what is newer holds where it lies', (t) => {
  const property = fc.property(coverages, news, (known, list) => {
    const before = JSON.stringify(known);
    const laid = layCoverage(known, list);
    const expected = steps(known);
    for (const one of list) expected.fill(`${one.state} ${one.reason}`, one.start, one.end);
    t.same(steps(laid), expected);
    t.equal(JSON.stringify(known), before, 'and what was known stays as it is');
    return isInForm(laid);
  });
  fc.assert(property, SEED);
  t.end();
});

t.test('a clipped coverage says the same within, and nothing outside', (t) => {
  const property = fc.property(coverages, covered, (coverage, within) => {
    const clipped = clipCoverage(coverage, within);
    const expected = steps(coverage).map((said, step) =>
      step >= within.start && step < within.end ? said : undefined,
    );
    t.same(steps(clipped), expected);
    return isInForm(clipped);
  });
  fc.assert(property, SEED);
  t.end();
});

t.test('of several endpoints the worst holds, and where one knows nothing, nothing is known', (t) => {
  const property = fc.property(fc.array(coverages, { maxLength: 3 }), (lists) => {
    const both = intersectCoverage(lists);
    const all = lists.map(steps);
    const expected = Array.from({ length: STEPS }, (_, step) => {
      const said = all.map((one) => one[step]);
      if (said.length === 0 || said.includes(undefined)) return undefined;
      const rank = (one: string | undefined) => ['comp', 'part', 'supp', 'unav'].indexOf(one?.slice(0, 4) ?? '');
      return said.reduce((worst, one) => (rank(one) > rank(worst) ? one : worst));
    });
    t.same(steps(both), expected);
    return isInForm(both);
  });
  fc.assert(property, SEED);
  t.end();
});

t.test('intervals that touch and say the same become one', (t) => {
  const days: Covered[] = [
    { start: 2, end: 3, state: 'complete' },
    { start: 1, end: 2, state: 'complete' },
    { start: 3, end: 4, state: 'complete', reason: undefined },
    { start: 4, end: 5, state: 'partial', reason: 'sampled' },
  ];
  t.strictSame(layCoverage([], days), [
    { start: 1, end: 4, state: 'complete' },
    { start: 4, end: 5, state: 'partial', reason: 'sampled' },
  ]);
  t.end();
});

t.test('an interval that is none is refused', (t) => {
  for (const [start, end] of [
    [2, 1],
    [0.5, 1],
    [0, Number.NaN],
    [0, Number.POSITIVE_INFINITY],
  ] as const) {
    t.throws(() => layCoverage([], [{ start, end, state: 'complete' }]), RangeError);
    t.throws(() => clipCoverage([], { start, end }), RangeError);
  }
  t.strictSame(layCoverage([], [{ start: 1, end: 1, state: 'complete' }]), []);
  t.end();
});
