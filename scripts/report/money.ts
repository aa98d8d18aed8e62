/** How many digits of an amount are minor units, by ISO 4217, where they are not 2. Intl tells how many are shown, which for a
 * dozen currencies (HUF, IDR, PKR…) are fewer: an amount would be a hundred times too large. */
const DIGITS: ReadonlyMap<string, number> = new Map([
  ...'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'.split(' ').map((code) => [code, 0] as const),
  ...'BHD IQD JOD KWD LYD OMR TND'.split(' ').map((code) => [code, 3] as const),
  ...'CLF UYW'.split(' ').map((code) => [code, 4] as const),
]);

/** `1234567` minor units of EUR are `12345.67`: digits are moved, nothing is calculated, so nothing is rounded. */
export function amount(minorUnits: bigint, currency: string): string {
  const digits = DIGITS.get(currency) ?? 2;
  if (digits === 0) return String(minorUnits);
  const sign = minorUnits < 0n ? '-' : '';
  const text = String(minorUnits < 0n ? -minorUnits : minorUnits).padStart(digits + 1, '0');
  return `${sign}${text.slice(0, -digits)}.${text.slice(-digits)}`;
}
