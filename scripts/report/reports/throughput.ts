import { splitBar } from '../bars.ts';
import type { Organization, Row } from '../session.ts';
import { addDays, weekOf } from '../since.ts';
import type { Column } from '../table.ts';
import { cost, costTitle, count, duration, share, text, units } from '../values.ts';
import { type Report, type Section, summaryRows } from './report.ts';

/** More than so many days are shown by week: a terminal is no longer than that. */
const DAYS_SHOWN = 62;

type Sums = {
  tasks: number;
  runs: number;
  succeeded: number;
  failed: number;
  cancelled: number;
  turns: number;
  seconds: number;
  cost: bigint;
  unknown: number;
};

const nothing = (): Sums => ({
  tasks: 0,
  runs: 0,
  succeeded: 0,
  failed: 0,
  cancelled: 0,
  turns: 0,
  seconds: 0,
  cost: 0n,
  unknown: 0,
});

function add(sums: Sums, row: Row): void {
  sums.tasks += count(row, 'tasks_completed');
  sums.runs += count(row, 'runs_finished');
  sums.succeeded += count(row, 'runs_succeeded');
  sums.failed += count(row, 'runs_failed') + count(row, 'runs_expired');
  sums.cancelled += count(row, 'runs_cancelled');
  sums.turns += count(row, 'chat_turns');
  sums.seconds += count(row, 'run_seconds');
  sums.cost += units(row, 'known_cost_minor_units');
  sums.unknown += count(row, 'runs_with_unknown_cost');
}

/**
 * The days, or weeks, from the first one on, those without any work too. `rows` in the order of days; the latest may lie past
 * today, where the organization has moved to another zone.
 */
function periods(
  { since, today }: Organization,
  rows: readonly Row[],
): { name: string; of: (day: string) => string; starts: string[] } {
  const first = rows[0]?.['day'] ?? today;
  const latest = rows.at(-1)?.['day'] ?? today;
  const last = latest > today ? latest : today;
  // Before its first work there is nothing to see of an organization.
  const from = since > first ? since : first;
  const byWeek = addDays(from, DAYS_SHOWN) <= last;
  const of = byWeek ? weekOf : (day: string) => day;
  const starts: string[] = [];
  for (let at = of(from); at <= last; at = addDays(at, byWeek ? 7 : 1)) starts.push(at);
  return { name: byWeek ? 'week of' : 'day', of, starts };
}

const COLUMNS: readonly Column[] = [
  { title: 'tasks done', align: 'right' },
  { title: 'runs', align: 'right' },
  { title: 'succeeded', align: 'right' },
  { title: 'failed', align: 'right' },
  { title: 'cancelled', align: 'right' },
  { title: 'success', align: 'right' },
];

const figures = (sums: Sums) => [
  String(sums.tasks),
  String(sums.runs),
  String(sums.succeeded),
  String(sums.failed),
  String(sums.cancelled),
  share(sums.succeeded, sums.succeeded + sums.failed),
];

function byTime(organization: Organization, rows: readonly Row[]): Section {
  const { name, of, starts } = periods(organization, rows);
  const found = new Map(starts.map((start) => [start, nothing()]));
  const all = nothing();
  for (const row of rows) {
    const sums = found.get(of(row['day'] ?? ''));
    if (sums) add(sums, row);
    add(all, row);
  }
  const most = Math.max(...[...found.values()].map(({ runs }) => runs));
  const bars = [...found.values()].map(
    (sums) => (columns: number) => splitBar(sums.succeeded, sums.runs - sums.succeeded, most, columns),
  );
  return {
    table: {
      columns: [{ title: name, align: 'left' }, ...COLUMNS, { title: '', align: 'left' }],
      rows: [
        ...[...found].map(([start, sums], index) => [start, ...figures(sums), bars[index] ?? '']),
        ['all', ...figures(all)],
      ],
    },
    notes: ['success leaves cancelled runs out; bars: runs, █ succeeded, ░ others'],
  };
}

function byProfile(rows: readonly Row[], currency: string | undefined): Section {
  const profiles = new Map<string, { name: string; sums: Sums }>();
  for (const row of rows) {
    const id = row['agent_profile_id'] ?? '';
    const profile = profiles.get(id) ?? { name: text(row, 'agent_profile_name'), sums: nothing() };
    profiles.set(id, profile);
    add(profile.sums, row);
  }
  const sorted = [...profiles.values()].sort(
    (a, b) => b.sums.runs - a.sums.runs || b.sums.turns - a.sums.turns || (a.name < b.name ? -1 : 1),
  );
  const end: readonly Column[] = [
    { title: 'turns', align: 'right' },
    { title: 'time', align: 'right' },
    { title: costTitle(currency), align: 'right' },
  ];
  return {
    table: {
      columns: [{ title: 'profile', align: 'left', flexible: true }, ...COLUMNS, ...end],
      rows: sorted.map(({ name, sums }) => [
        name,
        ...figures(sums),
        String(sums.turns),
        duration(sums.seconds),
        cost({ known: sums.cost, unknownRuns: sums.unknown }, sums.runs + sums.turns, currency),
      ]),
    },
    notes: sorted.some(({ sums }) => sums.unknown > 0)
      ? ['≥ and unknown: of some, or all, runs and chat turns the cost was not reported']
      : [],
  };
}

export const throughput: Report = {
  rows: summaryRows('throughput_by_day', 'day, agent_profile_key, agent_profile_id'),
  async sections({ session, organization, currency }) {
    const rows = await session.rows(throughput.rows(organization));
    return rows.length === 0 ? [] : [byTime(organization, rows), byProfile(rows, currency)];
  },
};
