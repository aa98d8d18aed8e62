/** How many digits of an amount are minor units, by ISO 4217; 2 for a code that is not in use. */
function minorDigits(currency: string): number {
  return new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions().maximumFractionDigits ?? 2;
}

/** `1234567` minor units of EUR are `12345.67`: digits are moved, nothing is calculated, so nothing is rounded. */
export function amount(minorUnits: bigint, currency: string): string {
  const digits = minorDigits(currency);
  if (digits === 0) return String(minorUnits);
  const sign = minorUnits < 0n ? '-' : '';
  const text = String(minorUnits < 0n ? -minorUnits : minorUnits).padStart(digits + 1, '0');
  return `${sign}${text.slice(0, -digits)}.${text.slice(-digits)}`;
}
