import t from 'tap';
import { bar, splitBar } from '../../../scripts/report/bars.ts';
import { csvRecord } from '../../../scripts/report/csv.ts';
import { amount } from '../../../scripts/report/money.ts';
import { parseOptions, UsageError } from '../../../scripts/report/options.ts';
import { addDays, firstDay, parseSince, weekOf } from '../../../scripts/report/since.ts';
import { tableLines } from '../../../scripts/report/table.ts';
import { cut, json, pad, width } from '../../../scripts/report/text.ts';
import { cost, duration, share } from '../../../scripts/report/values.ts';
import { plain } from '../../../scripts/terminal.ts';

t.test('the width of text is that of a terminal', (test) => {
  const widths = { abc: 3, 日本: 4, é: 1, 'e\u0301': 1, '👩‍👩‍👧': 2, '🇩🇪': 2, 한국: 4, 'a\u200bb': 2, '': 0 };
  for (const [text, columns] of Object.entries(widths)) test.equal(width(text), columns, JSON.stringify(text));
  test.equal(cut('日本語の題', 5), '日本…', 'no character is cut in two');
  test.equal(cut('日本語の題', 6), '日本…');
  test.equal(width(cut('日本語の題', 6)), 5);
  test.equal(cut('👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧', 5), '👩‍👩‍👧👩‍👩‍👧…');
  test.equal(cut('exact', 5), 'exact');
  test.equal(pad('日本', 6, 'left'), '日本  ');
  test.equal(pad('日本', 6, 'right'), '  日本');
  test.end();
});

t.test('nothing that a terminal obeys gets through', (test) => {
  const hostile = 'a\u001b[2J\u009b31m\u0007\r\nb\tc\u202ed\u2066\u200f\u2028e\u007f';
  test.equal(plain(hostile), 'a\\u001b[2J\\u009b31m\\u0007\\r\\nb\\tc\\u202ed\\u2066\\u200f\\u2028e\\u007f');
  test.equal(plain('x\ud800y'), 'x\ufffdy');
  test.equal(JSON.parse(json(hostile)), hostile, 'JSON reads back as it was');
  test.notMatch(json(hostile), /[\u007f-\u009f\u202e\u2066\u2028]/);
  test.equal(plain('ä 日本 👩‍👩‍👧 e\u0301'), 'ä 日本 👩‍👩‍👧 e\u0301', 'what people write stays');
  test.end();
});

t.test('CSV is that of RFC 4180, and no spreadsheet calculates with its texts', (test) => {
  const text = (value: string | null) => ({ value, numeric: false });
  test.equal(csvRecord([text('a'), text('b"c'), text('d,e'), text(''), text(null)]), 'a,"b""c","d,e",,\r\n');
  const wide = [
    '＝1+1',
    '＋1',
    '－1',
    '＠SUM(A1)',
    '﹦1',
    '﹢1',
    '﹣1',
    '﹫SUM',
    '−1',
    '⁺1',
    '⁻1',
    '⁼1',
    '₊1',
    '₋1',
    '₌1',
    '=\u03381',
  ];
  for (const formula of ['=1+1', '+1', '-1', '@SUM(A1)', ...wide]) {
    test.equal(csvRecord([text(formula)]), `'${formula}\r\n`);
  }
  test.equal(csvRecord([text('=cmd|"/C calc"!A0')]), '"\'=cmd|""/C calc""!A0"\r\n');
  test.equal(csvRecord([text('\t=1'), text('a\nb'), text('\u001b[2J')]), '\\t=1,a\\nb,\\u001b[2J\r\n');
  test.equal(csvRecord([{ value: '-12.50', numeric: true }]), '-12.50\r\n', 'a number stays one');
  test.end();
});

t.test('an amount has all its digits, as many of them minor as its currency has', (test) => {
  test.equal(amount(1234567n, 'EUR'), '12345.67');
  test.equal(amount(5n, 'EUR'), '0.05');
  test.equal(amount(0n, 'EUR'), '0.00');
  test.equal(amount(-5n, 'EUR'), '-0.05');
  test.equal(amount(1234n, 'JPY'), '1234');
  test.equal(amount(1234n, 'KWD'), '1.234');
  test.equal(amount(1234n, 'HUF'), '12.34', 'which are shown without them');
  test.equal(amount(1234n, 'IQD'), '1.234');
  test.equal(amount(9_007_199_254_740_993n, 'USD'), '90071992547409.93', 'more than a float has');
  test.end();
});

t.test('an unknown cost is no zero', (test) => {
  test.equal(cost({ known: 0n, unknownRuns: 2 }, 2, 'EUR'), 'unknown');
  test.equal(cost({ known: 150n, unknownRuns: 1 }, 2, 'EUR'), '≥ 1.50');
  test.equal(cost({ known: 150n, unknownRuns: 0 }, 2, 'EUR'), '1.50');
  test.equal(cost({ known: 150n, unknownRuns: 0 }, 2, undefined), '150');
  test.equal(cost({ known: 0n, unknownRuns: 0 }, 0, 'EUR'), '0.00');
  test.end();
});

t.test('lengths of time and shares as a person says them', (test) => {
  const durations = {
    0: '0 s',
    59.4: '59 s',
    59.7: '1 min',
    3540: '59 min',
    3599: '1.0 h',
    86399: '1.0 d',
    900000: '10.4 d',
  };
  for (const [seconds, said] of Object.entries(durations)) test.equal(duration(Number(seconds)), said);
  test.equal(duration(undefined), '-');
  test.equal(share(0, 0), '-');
  test.equal(share(1, 1000), '<1 %');
  test.equal(share(999, 1000), '>99 %');
  test.equal(share(2, 3), '67 %');
  test.end();
});

t.test('since is a day, or days up to today', (test) => {
  test.same(parseSince('7d'), { days: 7 });
  test.same(parseSince('4w'), { days: 28 });
  test.same(parseSince('2024-02-29'), { day: '2024-02-29' });
  for (const wrong of [
    '',
    '0d',
    '7',
    'd',
    '-1d',
    '2026-02-29',
    '2026-13-01',
    '2026-1-1',
    'yesterday',
    '2026-01-01T00:00Z',
  ]) {
    test.equal(parseSince(wrong), undefined, wrong);
  }
  test.equal(firstDay({ days: 1 }, '2026-03-01'), '2026-03-01', 'today alone');
  test.equal(firstDay({ days: 7 }, '2024-03-01'), '2024-02-24');
  test.equal(firstDay({ day: '2026-01-05' }, '2026-03-01'), '2026-01-05');
  // 25 hours, over a midnight that comes twice.
  test.equal(addDays('2026-11-01', 1), '2026-11-02');
  test.equal(weekOf('2026-11-01'), '2026-10-26');
  test.equal(weekOf('2026-10-26'), '2026-10-26');
  test.end();
});

t.test('bars have the length of their numbers, and what is there is seen', (test) => {
  test.equal(bar(10, 10, 4), '████');
  test.equal(bar(5, 10, 4), '██');
  test.equal(bar(1, 1000, 4), '▏');
  test.equal(bar(0, 10, 4), '');
  test.equal(bar(0, 0, 4), '');
  test.equal(splitBar(3, 1, 4, 8), '██████░░');
  test.equal(splitBar(1000, 1, 1001, 8), '███████░');
  test.equal(splitBar(1, 1000, 1001, 8), '█░░░░░░░');
  test.equal(splitBar(1, 0, 1000, 8), '█');
  test.equal(splitBar(0, 0, 4, 8), '');
  test.end();
});

t.test('a table is aligned whatever is in it, and fits into the terminal', (test) => {
  const table = {
    columns: [
      { title: 'name', align: 'left', flexible: true },
      { title: 'runs', align: 'right' },
      { title: '', align: 'left' },
    ],
    rows: [
      ['日本語の長い題名です', '7', (columns: number) => bar(7, 7, columns)],
      ['short', '1234', ''],
    ],
  } as const;
  test.same(tableLines(table, 60), [
    'name                  runs',
    `日本語の長い題名です     7  ${'█'.repeat(32)}`,
    'short                 1234',
  ]);
  test.same(tableLines(table, 30), [
    'name              runs',
    '日本語の長い題…      7  ██████',
    'short             1234',
  ]);
  for (const line of tableLines(table, 16)) test.ok(width(line) <= 16, line);
  test.notMatch(tableLines(table, 16).join(''), '█', 'without room there is no bar');
  test.end();
});

t.test('what it cannot be called with is said in one line', (test) => {
  const wrong: Readonly<Record<string, readonly string[]>> = {
    'name a report: throughput, cost, waiting, queue, failures': [],
    'the report is one of throughput, cost, waiting, queue, failures, not "costs"': ['costs'],
    'one report at a time, and "waiting" is a second one': ['cost', 'waiting'],
    '--format is one of table, csv, json, not "xml"': ['cost', '--format', 'xml'],
    '--currency takes a code of ISO 4217 such as EUR, not "eur"': ['cost', '--currency', 'eur'],
    '--organization takes an id or a slug, not "a b"': ['cost', '--organization', 'a b'],
    '--since takes a number of days or weeks up to today (7d, 4w) or a day (2026-11-01), not "soon"': [
      'cost',
      '--since',
      'soon',
    ],
    "Unknown option '--sins'": ['cost', '--sins', '7d'],
  };
  for (const [message, argv] of Object.entries(wrong)) {
    test.throws(() => parseOptions(argv), new UsageError(message), argv.join(' '));
  }
  test.equal(parseOptions(['--help']), undefined);
  test.same(parseOptions(['cost']), {
    report: 'cost',
    organizations: [],
    since: { days: 30 },
    format: 'table',
    currency: undefined,
  });
  test.end();
});
