// Amounts (docs/interface.md, 2.14): decimals as text, at most 20 integral and 18 fractional digits. They are computed as whole
// coefficients of 10^-18 and rounded once, half to even; no floating-point number ever holds one.

const SCALE = 18;
const ONE = 10n ** 18n;
/** The first coefficient that has too many integral digits. */
const BEYOND = 10n ** 38n;
/** Bounded, so that it takes no longer for a longer text. */
const CANONICAL = /^-?(?:0|[1-9]\d{0,19})(?:\.\d{0,17}[1-9])?$/;
const DECIMAL = /^(-?)(\d{1,60})(?:\.(\d{1,60}))?$/;

/** What a whole number may come as. A `number` has to be one that JavaScript holds exactly. */
export type Whole = number | bigint | string;

/** How many digits a currency has behind the point, where that is not two. */
export type CurrencyDigits = Readonly<Record<string, number>>;

const digitsOf = (groups: Readonly<Record<number, string>>): CurrencyDigits =>
  Object.fromEntries(
    Object.entries(groups).flatMap(([digits, codes]) => codes.split(' ').map((code) => [code, Number(digits)])),
  );

/** ISO 4217. Those of `Intl` follow the prices that are usual instead, and give none to currencies that have two, as IDR. */
export const ISO_DIGITS: CurrencyDigits = digitsOf({
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
  3: 'BHD IQD JOD KWD LYD OMR TND',
  4: 'CLF UYW',
});

/**
 * Stripe's: it still counts ISK and UGX in hundredths, though they have lost theirs, and MGA, which ISO 4217 gives two, in whole
 * ones. HUF and TWD, whole in payouts, are counted in hundredths as elsewhere.
 */
export const STRIPE_DIGITS: CurrencyDigits = { ...ISO_DIGITS, ISK: 2, UGX: 2, MGA: 0 };

const refuse = (message: string): never => {
  throw new RangeError(message);
};

/** `numerator / denominator`, rounded half to even. @throws RangeError where the denominator is zero */
export function roundedQuotient(numerator: bigint, denominator: bigint): bigint {
  if (denominator === 0n) refuse('nothing is divided by zero');
  if (denominator < 0n) return roundedQuotient(-numerator, -denominator);
  const quotient = numerator / denominator;
  const rest = numerator % denominator;
  const twice = rest < 0n ? -2n * rest : 2n * rest;
  if (twice < denominator || (twice === denominator && quotient % 2n === 0n)) return quotient;
  return quotient + (numerator < 0n ? -1n : 1n);
}

/** Digits and how many of them stand behind the point. The text stays out of the error: it may be anything. */
function decimal(text: string): { digits: bigint; places: number } {
  const [, sign, integral, fraction = ''] = DECIMAL.exec(text) ?? refuse('an amount is a decimal without exponent');
  return { digits: BigInt(`${sign}${integral}${fraction}`), places: fraction.length };
}

function bounded(coefficient: bigint): bigint {
  if (coefficient >= BEYOND || coefficient <= -BEYOND) refuse('an amount has at most 20 integral digits');
  return coefficient;
}

/**
 * The coefficient of an amount: how often it holds 10^-18. Zeros before and behind count for nothing.
 * @throws RangeError where the text is no decimal, or has more digits than an amount may have
 */
export function parseAmount(text: string): bigint {
  const { digits, places } = decimal(text);
  if (places <= SCALE) return bounded(digits * 10n ** BigInt(SCALE - places));
  const divisor = 10n ** BigInt(places - SCALE);
  if (digits % divisor !== 0n) refuse('an amount has at most 18 fractional digits');
  return bounded(digits / divisor);
}

/** The one text of an amount: no exponent, no zeros that say nothing, no "-0". @throws RangeError beyond 20 integral digits */
export function formatAmount(coefficient: bigint): string {
  const size = bounded(coefficient) < 0n ? -coefficient : coefficient;
  const fraction = String(size % ONE).padStart(SCALE, '0');
  let places = SCALE;
  while (fraction[places - 1] === '0') places -= 1;
  return `${coefficient < 0n ? '-' : ''}${size / ONE}${places === 0 ? '' : `.${fraction.slice(0, places)}`}`;
}

/** Whether a text is the one of an amount: what `formatAmount` makes. */
export function isCanonicalAmount(text: string): boolean {
  return CANONICAL.test(text) && text !== '-0';
}

function exact(whole: Whole): string {
  if (typeof whole === 'number' && !Number.isSafeInteger(whole))
    refuse('a number has to be whole, and one that JavaScript holds exactly');
  return String(whole);
}

/** An amount that is counted in units of 10^-`places`. */
function fromUnits(units: Whole, places: number): string {
  const read = decimal(exact(units));
  const shift = SCALE - places - read.places;
  if (shift >= 0) return formatAmount(read.digits * 10n ** BigInt(shift));
  return formatAmount(roundedQuotient(read.digits, 10n ** BigInt(-shift)));
}

/**
 * The amount of so many cents, or whatever the smallest unit of the currency is. As text it may have a fraction (Stripe's
 * `unit_amount_decimal`). The case of the currency counts for nothing.
 * @throws RangeError where it is no whole number, out of range, or the currency not three letters
 */
export function fromMinorUnits(minor: Whole, currency: string, digits: CurrencyDigits = ISO_DIGITS): string {
  if (!/^[A-Za-z]{3}$/.test(currency)) refuse('a currency is three letters');
  return fromUnits(minor, digits[currency.toUpperCase()] ?? 2);
}

/** The amount of so many millionths. @throws RangeError as `fromMinorUnits` */
export function fromMicros(micros: Whole): string {
  return fromUnits(micros, 6);
}

/** @throws RangeError where one is no amount, or the sum out of range; sums on the way may be */
export function addAmounts(...amounts: readonly string[]): string {
  return formatAmount(amounts.reduce((sum, amount) => sum + parseAmount(amount), 0n));
}

/** @throws RangeError where it is no amount */
export function negateAmount(amount: string): string {
  return formatAmount(-parseAmount(amount));
}

/** Less than zero where `left` is the smaller one, zero where both are equal. @throws RangeError where one is no amount */
export function compareAmounts(left: string, right: string): number {
  const difference = parseAmount(left) - parseAmount(right);
  return difference < 0n ? -1 : Number(difference > 0n);
}

/**
 * `amount × times ÷ over`, rounded once. Two decimals become whole numbers by `parseAmount`: their scales cancel out.
 * @throws RangeError where it is no amount, a factor no whole number, `over` zero, or the result out of range
 */
export function scaleAmount(amount: string, times: number | bigint, over: number | bigint = 1): string {
  return formatAmount(roundedQuotient(parseAmount(amount) * BigInt(exact(times)), BigInt(exact(over))));
}
