import fc from 'fast-check';

/** Texts that have broken programs before. */
const nastyTexts = [
  ...['', ' ', '\0', 'a\0b', '\u001b[0m', '\ud800', '\udfff\ud800', '\uffff', '\u202e', 'ﷺ', '٣', '１', 'é', 'İ'],
  ...['..', '../../etc/passwd', '/', '\\', 'a/../b', '.', '%', '%00', '%2e%2e%2f', '%zz', '%c3%28'],
  ...["'; drop table app.tasks; --", '" or 1=1', '$1', '{{7*7}}', '<script>', '`id`', '*', '\\x00'],
  ...['null', 'undefined', 'true', 'NaN', '-1', '0', '1e309', '0x10', '99999999999999999999', '-0', '1.5', '1 '],
  ...['T-0', 'T-999999999', 'I-999999999', 'T-99999999999999999999', 't-1', '00000000-0000-0000-0000-000000000000'],
  ...[
    '__proto__',
    'constructor',
    'toString',
    '2026-02-30T00:00:00Z',
    '0000-01-01T00:00:00Z',
    '+275760-09-13T00:00:00Z',
  ],
  ...['x'.repeat(201), 'x'.repeat(2001), '字'.repeat(1000), '🚀'.repeat(400)],
];
export const nastyText = fc.oneof(
  fc.constantFrom(...nastyTexts),
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.string({ unit: 'grapheme-composite', maxLength: 30 }),
);
const nested = (depth: number) => Array.from({ length: depth }).reduce<unknown>((inner) => [inner], 1);
/** Any JSON that nobody would expect. */
export const nasty = fc.oneof(
  nastyText,
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -1,
    0.5,
    1e21,
    -1e300,
    5e-324,
    2 ** 31,
    -(2 ** 31) - 1,
    2 ** 53,
    2 ** 63,
  ),
  fc.constantFrom<unknown>(
    [],
    {},
    [null],
    [[[[]]]],
    { a: { b: {} } },
    { '\0': 1 },
    { '\ud800': 1 },
    nested(70),
    nested(500),
    'y'.repeat(300_000),
  ),
  fc.jsonValue({ maxDepth: 3 }),
);

/** The value with one thing wrong somewhere in it: replaced, taken away, wrapped or added; `picks` say where and how. */
export function spoil(value: unknown, picks: readonly number[], other: unknown): unknown {
  const [pick = 0, ...deeper] = picks;
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  if (entries.length === 0 || picks.length === 0) return pick % 3 === 2 ? [value] : other;
  const [key, inner] = entries[pick % entries.length] as [string, unknown];
  const copy: unknown[] | Record<string, unknown> = Array.isArray(value) ? [...value] : { ...(value as object) };
  const at = copy as Record<string, unknown>;
  const way = pick % 5;
  if (way === 0) delete at[key];
  else if (way === 1) at[Array.isArray(copy) ? copy.length : 'foreign'] = other;
  else at[key] = spoil(inner, deeper, other);
  return Array.isArray(copy) ? copy.filter((item) => item !== undefined) : copy;
}

/** What is no JSON, or JSON that hardly anybody means to send. */
export const brokenBodies: readonly string[] = [
  ...[
    '',
    ' ',
    '{',
    '}',
    '[',
    '{"a":}',
    '{a:1}',
    "{'a':1}",
    '{"a":1,}',
    '{"a":1}{"b":2}',
    'null',
    '"text"',
    '17',
    'true',
    '[]',
  ],
  ...[
    '{"a":01}',
    '{"a":1e999}',
    '{"a":-1e999}',
    '{"a":NaN}',
    '{"__proto__":{"x":1}}',
    '{"constructor":{"prototype":{}}}',
  ],
  ...['\ufeff{}', '{"title":"\\ud800"}', '{"title":"\\u0000"}', '{"title":"\u0000"}', '{"a":1,"a":2}', '// {}'],
  `${'['.repeat(100_000)}`,
  `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`,
  `{"title":"${'z'.repeat(1_100_000)}"}`,
  `[${'0,'.repeat(50_000)}0]`,
];
