import { type Align, cut, pad, width } from './text.ts';

/** A bar is drawn when it is known how wide it may be. */
export type Cell = string | ((columns: number) => string);

export type Column = Readonly<{
  title: string;
  align: Align /** Gives way where the terminal is narrow. */;
  flexible?: boolean;
}>;
export type Table = Readonly<{ columns: readonly Column[]; rows: readonly (readonly Cell[])[] }>;

const GAP = 2;
const FLEXIBLE_LEAST = 10;
const BAR_LEAST = 6;
const BAR_MOST = 40;

const isBar = (table: Table, index: number) => table.rows.some((row) => typeof row[index] === 'function');

/** How wide each column is so that the table fits into `columns`, as far as it can: bars go first, then names become short. */
function widths(table: Table, columns: number): number[] {
  const natural = table.columns.map(({ title }, index) => {
    if (isBar(table, index)) return 0;
    return Math.max(width(title), ...table.rows.map((row) => width(String(row[index] ?? ''))));
  });
  const gaps = GAP * (natural.length - 1);
  const left = () => columns - gaps - natural.reduce((sum, one) => sum + one, 0);
  const bar = natural.findIndex((_, index) => isBar(table, index));
  const needed = bar < 0 ? 0 : BAR_LEAST;
  for (const [index, { flexible }] of table.columns.entries()) {
    const missing = needed - left();
    const now = natural[index] ?? 0;
    if (flexible && missing > 0) natural[index] = Math.max(Math.min(now, FLEXIBLE_LEAST), now - missing);
  }
  if (bar >= 0) natural[bar] = left() >= BAR_LEAST ? Math.min(left(), BAR_MOST) : 0;
  return natural;
}

/** The lines of a table; the first one is the head. No line ends with spaces. */
export function tableLines(table: Table, columns: number): string[] {
  const wide = widths(table, columns);
  // A column without room, or without anything in it, takes no gap either.
  const shown = wide.flatMap((one, index) => (one > 0 ? [index] : []));
  const line = (cells: readonly Cell[]) => {
    const parts = shown.map((index) => {
      const cell = cells[index] ?? '';
      const room = wide[index] ?? 0;
      return pad(
        typeof cell === 'function' ? cell(room) : cut(cell, room),
        room,
        table.columns[index]?.align ?? 'left',
      );
    });
    return parts.join(' '.repeat(GAP)).trimEnd();
  };
  return [line(table.columns.map(({ title }) => title)), ...table.rows.map(line)];
}
