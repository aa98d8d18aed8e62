import fc from 'fast-check';
import t from 'tap';
import {
  addAmounts,
  compareAmounts,
  formatAmount,
  fromMicros,
  fromMinorUnits,
  ISO_DIGITS,
  isCanonicalAmount,
  negateAmount,
  parseAmount,
  roundedQuotient,
  STRIPE_DIGITS,
  scaleAmount,
} from '../../engine/amounts.ts';

const LARGEST = 10n ** 38n - 1n;
const coefficients = fc.bigInt({ min: -LARGEST, max: LARGEST });
const SEED = { seed: 20_261_130, numRuns: 500 };

t.test('every amount has one text, by which it is found again', (t) => {
  fc.assert(
    fc.property(coefficients, (coefficient) => {
      const text = formatAmount(coefficient);
      return isCanonicalAmount(text) && parseAmount(text) === coefficient;
    }),
    SEED,
  );
  for (const [text, one] of [
    ['007', '7'],
    ['-0', '0'],
    ['-0.000', '0'],
    ['12.3400', '12.34'],
    ['0.000000000000000001', '0.000000000000000001'],
    [`1.${'0'.repeat(30)}`, '1'],
    [`${'0'.repeat(30)}1`, '1'],
    ['99999999999999999999.999999999999999999', '99999999999999999999.999999999999999999'],
  ] as const) {
    t.equal(formatAmount(parseAmount(text)), one, text);
    t.equal(isCanonicalAmount(text), text === one, text);
  }
  t.end();
});

t.test('what is no amount is refused, without its text', (t) => {
  const beyond = ['100000000000000000000', '-100000000000000000000', '0.0000000000000000001', '9'.repeat(61)];
  for (const text of ['', ' 1', '1 ', '1.', '.5', '+1', '1e3', '--1', '0x1', '1,5', '١', 'NaN', '1\n', ...beyond]) {
    t.throws(() => parseAmount(text), { name: 'RangeError' }, JSON.stringify(text));
    t.notOk(isCanonicalAmount(text), JSON.stringify(text));
  }
  try {
    parseAmount('secret');
    t.fail('no error');
  } catch (error) {
    t.notMatch(String(error), 'secret');
  }
  t.throws(() => formatAmount(LARGEST + 1n), RangeError);
  t.throws(() => formatAmount(-LARGEST - 1n), RangeError);
  t.end();
});

t.test('a quotient is the nearest whole number, and of two the even one', (t) => {
  const divisors = fc.bigInt({ min: -1000n, max: 1000n }).filter((divisor) => divisor !== 0n);
  fc.assert(
    fc.property(fc.bigInt({ min: -100_000n, max: 100_000n }), divisors, (numerator, denominator) => {
      const quotient = roundedQuotient(numerator, denominator);
      const size = (value: bigint) => (value < 0n ? -value : value);
      const twice = 2n * size(numerator - quotient * denominator);
      return twice < size(denominator) || (twice === size(denominator) && quotient % 2n === 0n);
    }),
    SEED,
  );
  for (const [numerator, denominator, quotient] of [
    [1n, 2n, 0n],
    [3n, 2n, 2n],
    [5n, 2n, 2n],
    [-1n, 2n, 0n],
    [-3n, 2n, -2n],
    [5n, -2n, -2n],
    [-5n, -2n, 2n],
  ] as const) {
    t.equal(roundedQuotient(numerator, denominator), quotient, `${numerator} / ${denominator}`);
  }
  t.throws(() => roundedQuotient(1n, 0n), RangeError);
  t.end();
});

t.test('sums may leave the range on their way, and not at their end', (t) => {
  t.equal(addAmounts(), '0');
  t.equal(addAmounts('0.1', '0.2'), '0.3');
  t.equal(addAmounts('99999999999999999999', '5', '-10'), '99999999999999999994');
  t.throws(() => addAmounts('99999999999999999999', '1'), RangeError);
  t.equal(negateAmount('0'), '0');
  t.equal(negateAmount('-1.50'), '1.5');
  t.same(['10', '9', '-1', '0.5'].sort(compareAmounts), ['-1', '0.5', '9', '10']);
  t.equal(compareAmounts('1.0', '1'), 0);
  t.end();
});

t.test('a product is rounded once, at the end', (t) => {
  t.equal(scaleAmount('10', 1, 3), '3.333333333333333333');
  t.equal(scaleAmount('20', 1, 3), '6.666666666666666667');
  t.equal(scaleAmount('10', 3, 3), '10');
  t.equal(scaleAmount('0.000000000000000001', 1, 2), '0');
  t.equal(scaleAmount('0.000000000000000003', 1, 2), '0.000000000000000002');
  t.equal(scaleAmount('-120', 365, -12), '3650');
  t.equal(scaleAmount('99999999999999999999', 10n ** 30n, 10n ** 30n), '99999999999999999999');
  // Two rates of the European Central Bank, of which 1 EUR is so many dollars and so many pounds.
  t.equal(scaleAmount('100', parseAmount('0.8561'), parseAmount('1.0873')), '78.736319323093902327');
  t.throws(() => scaleAmount('1', 1, 0), RangeError);
  t.throws(() => scaleAmount('1', 1.5), RangeError);
  t.throws(() => scaleAmount('1', 2 ** 53), RangeError);
  t.end();
});

t.test('the smallest units of a currency become amounts', (t) => {
  t.equal(fromMinorUnits(1999, 'USD'), '19.99');
  t.equal(fromMinorUnits(-5n, 'usd'), '-0.05');
  t.equal(fromMinorUnits('500', 'JPY'), '500');
  t.equal(fromMinorUnits(12_345, 'KWD'), '12.345');
  t.equal(fromMinorUnits('12.5', 'EUR'), '0.125');
  t.equal(fromMinorUnits('0.000000000001', 'EUR'), '0.00000000000001');
  t.equal(fromMinorUnits(`0.${'0'.repeat(16)}5`, 'EUR'), '0', 'half of the last digit goes to the even one');
  t.equal(fromMinorUnits(10n ** 21n, 'EUR'), '10000000000000000000');
  for (const [currency, iso, stripe] of [
    ['ISK', '500', '5'],
    ['UGX', '500', '5'],
    ['MGA', '5', '500'],
    ['HUF', '5', '5'],
    ['TWD', '5', '5'],
    ['XOF', '500', '500'],
    ['BHD', '0.5', '0.5'],
    ['CLF', '0.05', '0.05'],
  ] as const) {
    t.equal(fromMinorUnits(500, currency, ISO_DIGITS), iso, currency);
    t.equal(fromMinorUnits(500, currency, STRIPE_DIGITS), stripe, `${currency} of Stripe`);
  }
  t.equal(fromMicros(1_500_000), '1.5');
  t.equal(fromMicros('1'), '0.000001');
  for (const minor of [0.5, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY, '', '1e3', 10n ** 22n]) {
    t.throws(() => fromMinorUnits(minor, 'EUR'), RangeError, String(minor));
  }
  for (const currency of ['', 'EU', 'EURO', '€', 'E R', 'eu1']) {
    t.throws(() => fromMinorUnits(1, currency), RangeError, JSON.stringify(currency));
  }
  t.end();
});
