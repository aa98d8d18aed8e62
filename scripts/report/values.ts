import { plain } from '../terminal.ts';
import { amount } from './money.ts';
import type { Row } from './session.ts';

/** A whole number of a row; what the views count lies far below 2^53. */
export const count = (row: Row, name: string): number => Number(row[name] ?? 0);
/** An amount of minor units, of any size. */
export const units = (row: Row, name: string): bigint => BigInt(row[name] ?? 0);
export const text = (row: Row, name: string): string => plain(row[name] ?? '');

const STEPS = [
  { unit: 's', seconds: 1, below: 60, digits: 0 },
  { unit: 'min', seconds: 60, below: 3_600, digits: 0 },
  { unit: 'h', seconds: 3_600, below: 86_400, digits: 1 },
  { unit: 'd', seconds: 86_400, below: Number.POSITIVE_INFINITY, digits: 1 },
] as const;

/** A length of time as a person says it: `12 min`, `3.4 h`. */
export function duration(seconds: number | undefined): string {
  if (seconds === undefined) return '-';
  for (const { unit, seconds: one, below, digits } of STEPS) {
    const value = (seconds / one).toFixed(digits);
    // 59.7 s is no 60 s: what rounds up to the next unit is said in it.
    if (Number(value) * one < below) return `${value} ${unit}`;
  }
  return '-';
}

export function seconds(row: Row, name: string): number | undefined {
  const value = row[name];
  return value === null || value === undefined ? undefined : Number(value);
}

/** `part` of `whole` in percent, or a dash where there is nothing to divide by. Never 100 % or 0 % by rounding alone. */
export function share(part: number, whole: number): string {
  if (whole === 0) return '-';
  const percent = Math.round((part / whole) * 100);
  if (percent === 100 && part < whole) return '>99 %';
  return percent === 0 && part > 0 ? '<1 %' : `${percent} %`;
}

export type Costs = Readonly<{ known: bigint; unknownRuns: number }>;

/** What is known in full, as the least that it can be where some of it is unknown, or `unknown` where all of it is. */
export function cost({ known, unknownRuns }: Costs, runs: number, currency: string | undefined): string {
  if (runs > 0 && unknownRuns === runs) return 'unknown';
  const shown = currency === undefined ? String(known) : amount(known, currency);
  return unknownRuns > 0 ? `≥ ${shown}` : shown;
}

export const costTitle = (currency: string | undefined) =>
  currency === undefined ? 'cost in minor units' : `cost in ${currency}`;
