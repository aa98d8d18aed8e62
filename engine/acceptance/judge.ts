import type { JsonPointerCheck, Operator } from './criteria.ts';
import { deepEqual, type ExactValue, isNumber, isObject, parseExact } from './exact_json.ts';
import { compareNumbers, ExactNumber } from './exact_number.ts';
import { locate } from './json_pointer.ts';

const SHOWN = 80;

/** Short text on one line, whatever it was made of. */
export function oneLine(text: string, length: number): string {
  const flat = text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').toWellFormed();
  return flat.length <= length ? flat : `${flat.slice(0, length - 1).toWellFormed()}…`;
}

function describe(value: ExactValue): string {
  if (value instanceof ExactNumber) return oneLine(value.source, SHOWN);
  if (Array.isArray(value) && value.length > 4) return `an array of ${value.length}`;
  if (isObject(value) && Object.keys(value).length > 4) return `an object of ${Object.keys(value).length} members`;
  const text = JSON.stringify(value, (_key, item) => (item instanceof ExactNumber ? item.source : item));
  return oneLine(text, SHOWN);
}

/** Null where the two have no order: numbers are ordered with numbers, strings with strings. */
function order(found: ExactValue, wanted: ExactValue): number | null {
  if (isNumber(found) && isNumber(wanted)) return compareNumbers(found, wanted);
  if (typeof found !== 'string' || typeof wanted !== 'string') return null;
  return found === wanted ? 0 : found < wanted ? -1 : 1;
}

function contains(found: ExactValue, wanted: ExactValue): boolean {
  if (typeof found === 'string') return typeof wanted === 'string' && found.includes(wanted);
  if (Array.isArray(found)) return found.some((item) => deepEqual(item, wanted));
  return isObject(found) && typeof wanted === 'string' && Object.hasOwn(found, wanted);
}

const holds: Record<Exclude<Operator, 'exists'>, (found: ExactValue, wanted: ExactValue) => boolean> = {
  eq: deepEqual,
  ne: (found, wanted) => !deepEqual(found, wanted),
  gt: (found, wanted) => (order(found, wanted) ?? 0) > 0,
  gte: (found, wanted) => (order(found, wanted) ?? -1) >= 0,
  lt: (found, wanted) => (order(found, wanted) ?? 0) < 0,
  lte: (found, wanted) => (order(found, wanted) ?? 1) <= 0,
  contains,
};

const words: Record<Exclude<Operator, 'exists'>, string> = {
  eq: 'to be',
  ne: 'to differ from',
  gt: 'to be greater than',
  gte: 'to be at least',
  lt: 'to be less than',
  lte: 'to be at most',
  contains: 'to contain',
};

/** `text` is valid JSON. Null when the check holds, else what was expected and what was found. */
function judgeOne(text: string, check: JsonPointerCheck): string | null {
  const place = check.pointer === '' ? 'the document' : oneLine(check.pointer, SHOWN);
  const source = locate(text, check.pointer);
  if (check.operator === 'exists') {
    const wanted = check.value !== false;
    if ((source !== null) === wanted) return null;
    return wanted ? `expected ${place} to exist` : `expected ${place} not to exist`;
  }
  const wanted = check.value as ExactValue;
  const expected = `expected ${place} ${words[check.operator]} ${describe(wanted)}`;
  if (source === null) return `${expected}, found nothing there`;
  try {
    const found = parseExact(source);
    return holds[check.operator](found, wanted) ? null : `${expected}, found ${describe(found)}`;
  } catch (error) {
    // Too deep to build, or a number of megabytes: nothing that an expected value could equal or order itself by.
    if (error instanceof RangeError) return `${expected}, found a value too deep or too long to compare`;
    throw error;
  }
}

export type Judgement = Readonly<{ problem: string } | { results: readonly (string | null)[] }>;

/**
 * Evaluates pointer checks on the bytes of one file: for each check null when it holds, else a sentence; or one
 * `problem` for all of them when the bytes are not JSON.
 */
export function judgeJson(bytes: Uint8Array, checks: readonly JsonPointerCheck[]): Judgement {
  let text: string;
  try {
    // A byte order mark is dropped, bytes that are not UTF-8 are refused.
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return { problem: 'it is not UTF-8 text' };
  }
  try {
    JSON.parse(text);
  } catch (error) {
    return { problem: `it is not valid JSON: ${oneLine(error instanceof Error ? error.message : String(error), 200)}` };
  }
  return { results: checks.map((check) => judgeOne(text, check)) };
}
