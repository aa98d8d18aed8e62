import { compareNumbers, ExactNumber } from './exact_number.ts';

export type ExactValue =
  | null
  | boolean
  | string
  | number
  | ExactNumber
  | readonly ExactValue[]
  | Readonly<{ [key: string]: ExactValue }>;

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown;
const parseWithSource = JSON.parse as (text: string, reviver: Reviver) => unknown;

/**
 * Parses JSON so that no number is changed: one that its float would not print back as it was written is kept as text.
 * @throws SyntaxError; RangeError where it is nested some thousand levels deep.
 */
export function parseExact(text: string): ExactValue {
  return parseWithSource(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && String(value) !== source ? new ExactNumber(source) : value,
  ) as ExactValue;
}

export function isNumber(value: ExactValue): value is number | ExactNumber {
  return typeof value === 'number' || value instanceof ExactNumber;
}

export function isObject(value: ExactValue): value is Readonly<{ [key: string]: ExactValue }> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);
}

/** Equal as JSON: numbers by value, arrays in order, objects by members in any order. */
export function deepEqual(a: ExactValue, b: ExactValue): boolean {
  if (isNumber(a) || isNumber(b)) return isNumber(a) && isNumber(b) && compareNumbers(a, b) === 0;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => deepEqual(item, b[index]));
  }
  if (!isObject(a) || !isObject(b)) return a === b;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && deepEqual(a[key] as ExactValue, b[key] as ExactValue))
  );
}
