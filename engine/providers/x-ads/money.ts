import { z } from 'zod';
import { ProviderError } from '../outgoing/index.ts';
import { KEY } from './site.ts';

// X counts money in millionths of a unit. Agents and people read and write decimals; neither way leads over floating-point numbers.

const DIGITS = 6;

/** A sum of money: greater than zero. */
export const amount = z
  .string()
  .regex(/^(?!0+(?:\.0+)?$)\d{1,9}(?:\.\d{1,6})?$/, 'must be a decimal above zero with at most six decimal places');

/** `12.5` is `12500000`. */
export function microsOf(decimal: string): string {
  const [whole = '', fraction = ''] = decimal.split('.');
  return BigInt(whole + fraction.padEnd(DIGITS, '0')).toString();
}

/** `12500000` is `12.50`. @throws ProviderError where it is no count */
export function amountOf(micros: unknown): string | null {
  if (micros === null) return null;
  if (!Number.isSafeInteger(micros)) {
    throw new ProviderError(KEY, 'failed', 'The provider responds with an amount that is not the documented one.');
  }
  const digits = String(Math.abs(Number(micros))).padStart(DIGITS + 1, '0');
  const fraction = digits.slice(-DIGITS).replace(/0{1,4}$/, '');
  return `${Number(micros) < 0 ? '-' : ''}${digits.slice(0, -DIGITS)}.${fraction}`;
}

const MICRO = /_micro$/;

/** Each `…_micro` of a response, at any depth, as a decimal by the name without it. @throws ProviderError */
export function withAmounts(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withAmounts);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]: [string, unknown]) => {
      if (!MICRO.test(name)) return [name, withAmounts(inner)];
      return [name.replace(MICRO, ''), Array.isArray(inner) ? inner.map(amountOf) : amountOf(inner)];
    }),
  );
}
