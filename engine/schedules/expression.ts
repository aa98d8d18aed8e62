import { Cron } from 'croner';

const MINUTE_MS = 60_000;
/** What a field may hold: `*`, numbers, names, ranges, lists and steps. croner knows more (L, W, #, nicknames, dates). */
const FIELD = /^(?:\*|[a-z0-9]+(?:-[a-z0-9]+)?)(?:\/\d+)?(?:,(?:\*|[a-z0-9]+(?:-[a-z0-9]+)?)(?:\/\d+)?)*$/i;
const NUMBERS = /^[\d*,/-]+$/;
const MONTHS = 'jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec';
const DAYS = 'sun|mon|tue|wed|thu|fri|sat';

function hasOnlyNames(field: string, names: string): boolean {
  return NUMBERS.test(field.replaceAll(new RegExp(`\\b(?:${names})\\b`, 'gi'), '0'));
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
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = fields;
  const plain = fields.every((field) => FIELD.test(field));
  const named = hasOnlyNames(month, MONTHS) && hasOnlyNames(weekday, DAYS);
  if (fields.length !== 5 || !plain || !named || ![minute, hour, day].every((field) => NUMBERS.test(field))) {
    throw new Error('must have 5 fields (minute, hour, day of month, month, day of week) of *, numbers, - , and /');
  }
  const cron = new Cron(fields.join(' '), { timezone: 'UTC', mode: '5-part' });
  return {
    rhythmic: /[*/]/.test(hour),
    next(clock) {
      const found = cron.nextRun(new Date(clock))?.getTime();
      return found === undefined ? undefined : found - (found % MINUTE_MS);
    },
  };
}
