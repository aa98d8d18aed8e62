import { Cron } from 'croner';

const MINUTE_MS = 60_000;
/** What a field may hold: `*`, numbers, names, ranges, lists and steps. croner knows more (L, W, #, nicknames, dates). */
const FIELD = /^(?:\*|[a-z0-9]+(?:-[a-z0-9]+)?)(?:\/\d+)?(?:,(?:\*|[a-z0-9]+(?:-[a-z0-9]+)?)(?:\/\d+)?)*$/i;
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

/** The numbers that a field takes, the names of them from the first one on, and how long a step may be. */
type Field = Readonly<{ name: string; first: number; last: number; names: readonly string[]; longest: number }>;

const FIELDS: readonly Field[] = [
  { name: 'minute', first: 0, last: 59, names: [], longest: 60 },
  { name: 'hour', first: 0, last: 23, names: [], longest: 24 },
  { name: 'day of month', first: 1, last: 31, names: [], longest: 31 },
  { name: 'month', first: 1, last: 12, names: MONTHS, longest: 12 },
  // Sunday is 0 and 7.
  { name: 'day of week', first: 0, last: 7, names: DAYS, longest: 7 },
];

function numberOf(word: string, { name, first, last, names }: Field, isEnd: boolean): number {
  const place = names.indexOf(word.toLowerCase());
  if (place === -1 && !/^\d+$/.test(word)) {
    throw new Error(`${name}: ${word} is no number${names.length > 0 ? ` and none of ${names.join(', ')}` : ''}`);
  }
  const value = place === -1 ? Number(word) : first + place;
  if (value < first || value > last) throw new Error(`${name}: ${word} is not between ${first} and ${last}`);
  return isEnd && names === DAYS && place === 0 ? last : value;
}

/** Refuses a field in the words of whoever wrote it: the library counts months and days from 0, and tells of those. */
function checkField(text: string, field: Field): void {
  for (const item of text.split(',')) {
    const [range = '', step] = item.split('/');
    const [from = '', to] = range.split('-');
    if (range !== '*') {
      const begin = numberOf(from, field, false);
      if (to !== undefined && begin > numberOf(to, field, true)) {
        throw new Error(`${field.name}: ${range} ends before it begins`);
      }
    }
    if (step === undefined) continue;
    if (range !== '*' && to === undefined) {
      throw new Error(`${field.name}: in ${item}, * or a range has to stand before the step`);
    }
    if (Number(step) < 1 || Number(step) > field.longest) {
      throw new Error(`${field.name}: the step of ${item} is not between 1 and ${field.longest}`);
    }
  }
}

/** A cron expression over a clock without zone: its times are those that a wall clock shows. */
export type Expression = Readonly<{
  /**
   * The first time after the given one that the expression names, both as if UTC were the clock; undefined where there
   * is none (30 February).
   */
  next(clock: number): number | undefined;
  /** Its hour is `*` or has steps: it means a rhythm rather than times of the day. */
  rhythmic: boolean;
}>;

/**
 * Parses a cron expression of 5 fields. Days of the month and of the week, where both are limited, add up as in every
 * cron: one of the two is enough.
 * @throws Error that says what is wrong with it
 */
export function parseExpression(text: string): Expression {
  const fields = text.trim().split(/\s+/);
  if (fields.length !== FIELDS.length || !fields.every((field) => FIELD.test(field))) {
    throw new Error('must have 5 fields (minute, hour, day of month, month, day of week) of *, numbers, - , and /');
  }
  for (const [index, field] of FIELDS.entries()) checkField(fields[index] ?? '', field);
  const cron = new Cron(fields.join(' '), { timezone: 'UTC', mode: '5-part' });
  return {
    rhythmic: /[*/]/.test(fields[1] ?? ''),
    next(clock) {
      const found = cron.nextRun(new Date(clock))?.getTime();
      return found === undefined ? undefined : found - (found % MINUTE_MS);
    },
  };
}
