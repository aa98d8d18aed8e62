import type { CoverageState, Covered, Interval } from '../providers/dataset.ts';

// What is known about the time of a source (docs/interface.md, 2.14). A coverage is sorted and disjoint, and two intervals that touch
// differ in what they say; where it has none, nothing is known.

export type Coverage = readonly Covered[];

const WORSE: readonly CoverageState[] = ['complete', 'partial', 'suppressed', 'unavailable'];

const saysTheSame = (left: Covered, right: Covered) => left.state === right.state && left.reason === right.reason;

function check({ start, end }: Interval): void {
  if (!Number.isSafeInteger(start) || !Number.isSafeInteger(end) || start > end) {
    throw new RangeError('an interval goes from one millisecond to a later one');
  }
}

const stretch = (covered: Covered, start: number, end: number): Covered => ({
  start,
  end,
  state: covered.state,
  ...(covered.reason === undefined ? {} : { reason: covered.reason }),
});

/** Disjoint intervals in their order; what touches and says the same becomes one. */
function merged(intervals: Coverage): Covered[] {
  const coverage: Covered[] = [];
  for (const next of intervals) {
    const last = coverage.at(-1);
    if (last !== undefined && last.end === next.start && saysTheSame(last, next)) {
      coverage[coverage.length - 1] = stretch(last, last.start, next.end);
    } else coverage.push(next);
  }
  return coverage;
}

/** What of a coverage lies within an interval. @throws RangeError where that ends before it begins */
export function clipCoverage(coverage: Coverage, within: Interval): Covered[] {
  check(within);
  return coverage.flatMap((covered) => {
    const start = Math.max(covered.start, within.start);
    const end = Math.min(covered.end, within.end);
    return start < end ? [stretch(covered, start, end)] : [];
  });
}

function layOne(coverage: Coverage, news: Covered): Coverage {
  check(news);
  if (news.start === news.end) return coverage;
  const before = clipCoverage(coverage, { start: Number.MIN_SAFE_INTEGER, end: news.start });
  const after = clipCoverage(coverage, { start: news.end, end: Number.MAX_SAFE_INTEGER });
  return [...before, stretch(news, news.start, news.end), ...after];
}

/**
 * Lays what is known now over what was known: where it lies, it holds, and of two that overlap the later one.
 * @throws RangeError where an interval ends before it begins
 */
export function layCoverage(known: Coverage, news: readonly Covered[]): Covered[] {
  return merged(news.reduce(layOne, known));
}

function worse(left: Covered, right: Covered): Covered {
  return WORSE.indexOf(right.state) > WORSE.indexOf(left.state) ? right : left;
}

function intersectTwo(left: Coverage, right: Coverage): Covered[] {
  const both: Covered[] = [];
  let at = 0;
  let beside = 0;
  for (;;) {
    const one = left[at];
    const other = right[beside];
    if (one === undefined || other === undefined) return both;
    const start = Math.max(one.start, other.start);
    const end = Math.min(one.end, other.end);
    if (start < end) both.push(stretch(worse(one, other), start, end));
    if (one.end <= other.end) at += 1;
    if (other.end <= one.end) beside += 1;
  }
}

/**
 * What is known of a dataset that several endpoints answer for: the worst of what they say, and of the first that says it; where one
 * says nothing, nothing is known. None at all know nothing.
 */
export function intersectCoverage(coverages: readonly Coverage[]): Covered[] {
  const [first = [], ...others] = coverages;
  return merged(others.reduce<Coverage>(intersectTwo, first));
}
