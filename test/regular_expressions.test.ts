import t from 'tap';
import { carriesCredential } from '../engine/credentials.ts';
import { expressionsOf, pumpsOf } from './support/regular_expressions.ts';

const { found, composed } = expressionsOf('{api,engine,jobs,scripts,examples}/**/*.{ts,mjs}');

/** They read files of this repository, and never what a user wrote. */
const OWN_TEXT = [
  'engine/db/schema/',
  'scripts/bench/',
  'scripts/docs/',
  'scripts/generate/',
  'scripts/lint_sql/',
  'scripts/test/',
];

/** A match at the first or at the last character can hide what a search in between costs. */
const AROUND = [
  ['', ''],
  ['', '\n\0'],
  ['\0', '\n\0'],
] as const;
const MOST_PUMPS = 120;
const TURNS = 6;
/** In this order, so that what is exponential or cubic is found before it takes hours. */
const LENGTHS = [8, 12, 16, 20, 24, 28, 32, 64, 256, 1_024, 4_096, 16_384];
const SHORT = 32;
/** What a text may take before it is looked at closely. */
const SCREEN_MS = 4;
/** Runs that are shorter are noise. */
const TOO_SHORT_MS = 30;
const LONGEST = 2_097_152;
/** Linear is 2, quadratic 4. */
const MOST_RATIO = 3.2;

/** Of this thread's processor time: what else runs on the machine does not count. */
function milliseconds(work: () => unknown, runs: number): number {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < runs; run += 1) {
    const start = process.threadCpuUsage();
    work();
    const { user, system } = process.threadCpuUsage(start);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}

/** Whether the work grows faster than the text. The least of several runs counts: a garbage collection is no growth. */
function superlinear(work: (text: string) => unknown, textOf: (length: number) => string): boolean {
  const slow = LENGTHS.find((length) => {
    const text = textOf(length);
    return milliseconds(() => work(text), 1) > SCREEN_MS && milliseconds(() => work(text), 4) > SCREEN_MS;
  });
  if (slow === undefined || slow <= SHORT) return slow !== undefined;
  for (let length = slow / 2; length <= LONGEST; length *= 2) {
    const [half, whole] = [textOf(length), textOf(length * 2)];
    const first = milliseconds(() => work(half), 3);
    if (first >= TOO_SHORT_MS) return milliseconds(() => work(whole), 2) / first > MOST_RATIO;
  }
  return false;
}

/** A text that costs more than its length, if there is one among the likely ones. */
function costly(work: (text: string) => unknown, pumps: readonly string[]): string | undefined {
  for (const pump of pumps) {
    for (const [start, end] of AROUND) {
      const textOf = (length: number) => start + pump.repeat(Math.ceil(length / pump.length)) + end;
      if (superlinear(work, textOf))
        return `${JSON.stringify(start)} + ${JSON.stringify(pump)} × n + ${JSON.stringify(end)}`;
    }
  }
  return undefined;
}

function costlyFor(expression: RegExp): string | undefined {
  const all = new RegExp(expression.source, expression.flags.replace(/[gy]/g, '').concat('g'));
  return costly((text) => text.replace(all, ''), pumpsOf(expression, TURNS).slice(0, MOST_PUMPS));
}

t.test('what is known to be quadratic is found', (test) => {
  for (const expression of [
    /\/+$/,
    /\b[a-z][a-z0-9+.-]*:\/\//i,
    /\beyJ[\w-]{8,}\.[\w-]{8,}\./,
    /^(?:a+)+$/,
    /a.*b.*c/,
  ]) {
    test.ok(costlyFor(expression), String(expression));
  }
  test.end();
});

t.test('no expression that can meet a user’s text costs more than its length', (test) => {
  const seen = new Set<string>();
  test.ok(found.length > 150);
  for (const { place, file, expression } of found) {
    if (OWN_TEXT.some((folder) => file.startsWith(folder)) || seen.has(String(expression))) continue;
    seen.add(String(expression));
    const text = costlyFor(expression);
    if (text !== undefined) test.fail(`${place}: ${expression} is not linear for ${text}`);
  }
  test.end();
});

/** What composed expressions come to. */
const COMPOSED: Readonly<Record<string, readonly RegExp[]>> = {
  'api/admin/limits.ts': [/^(created_at|updated_at|primary_key)_(asc|desc)$/i],
  // Patterns of our own, held against our own examples.
  'api/http/openapi/example.ts': [],
  'api/http/register.ts': [/^\/organizations\/[^/]+\/tasks\/[^/]+$/, /^\/organizations\/[^/]+\/context\/files\/.+$/],
  'engine/context/evidence.ts': [
    /^(?:source:)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i,
    /^org:\/\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\/context\/sources\/([0-9a-f-]{36})$/i,
  ],
  // A secret of at most five characters, as it is.
  'engine/secret_values.ts': [/(?<![\p{L}\p{N}])a\.b\*c(?![\p{L}\p{N}])/gu],
};

t.test('an expression that is composed is known here, and linear too', (test) => {
  const files = composed.map(({ file }) => file).filter((file) => !OWN_TEXT.some((folder) => file.startsWith(folder)));
  test.same([...new Set(files)].sort(), Object.keys(COMPOSED));
  for (const expression of Object.values(COMPOSED).flat())
    test.equal(costlyFor(expression), undefined, String(expression));
  test.end();
});

t.test('the filter of credentials is linear as a whole', (test) => {
  const pumps = found
    .filter(({ file }) => file === 'engine/credentials.ts')
    .flatMap(({ expression }) => pumpsOf(expression, 3).slice(0, 20));
  test.ok(pumps.length > 100);
  test.equal(costly(carriesCredential, pumps), undefined);
  test.end();
});
