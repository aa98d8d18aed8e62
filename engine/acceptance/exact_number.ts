/** A JSON number as it was written, where a float would not give it back. */
export class ExactNumber {
  readonly source: string;
  constructor(source: string) {
    this.source = source;
  }
}

/** Longer tokens are no quantities, and comparing them would cost time that grows with their square. */
const MAX_DIGITS = 10_000;
const TOKEN = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

type Decimal = Readonly<{ sign: -1 | 0 | 1; digits: string; exponent: bigint }>;

/** `0.digits × 10^exponent` without leading or trailing zeros, so that equal numbers have equal parts. */
function decimal(value: number | ExactNumber): Decimal {
  const source = typeof value === 'number' ? String(value) : value.source;
  const match = source.length <= MAX_DIGITS ? TOKEN.exec(source) : null;
  if (!match) throw new RangeError('a number too long to compare');
  const [, minus = '', whole = '', fraction = '', power = '0'] = match;
  const all = whole + fraction;
  const significant = all.replace(/^0+/, '');
  const digits = significant.replace(/(?<!0)0+$/, '');
  if (digits === '') return { sign: 0, digits: '', exponent: 0n };
  const exponent = BigInt(power) + BigInt(whole.length - (all.length - significant.length));
  return { sign: minus === '' ? 1 : -1, digits, exponent };
}

function compareMagnitudes(a: Decimal, b: Decimal): number {
  if (a.exponent !== b.exponent) return a.exponent < b.exponent ? -1 : 1;
  if (a.digits === b.digits) return 0;
  // Both begin with their first significant digit, so the order of the texts is the order of the numbers.
  return a.digits < b.digits ? -1 : 1;
}

/**
 * Negative, zero or positive, exactly: `0.1` and `0.1000000000000000055` differ, `1.0` and `1e0` do not.
 * @throws RangeError for a number of more than 10 000 characters.
 */
export function compareNumbers(left: number | ExactNumber, right: number | ExactNumber): number {
  const a = decimal(left);
  const b = decimal(right);
  if (a.sign !== b.sign) return a.sign - b.sign;
  return a.sign === 0 ? 0 : a.sign * compareMagnitudes(a, b);
}
