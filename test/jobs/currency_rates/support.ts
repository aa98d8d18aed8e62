import { bankDay, dayAfter } from '../../../engine/currency_rates/index.ts';
import { BANK, type QuotedDays, type RatesBank } from '../../support/rates_bank.ts';

/** The bank is asked, and it is this one. */
export const settingsFor = ({ origin }: Pick<RatesBank, 'origin'>) => ({
  CURRENCY_RATES: 'ecb',
  ALLOW_PRIVATE_ADDRESSES: '1',
  PROVIDER_ORIGINS: JSON.stringify({ [BANK]: origin }),
});

/** Rates of the last working days, the newest first; today is none of them. */
export function workingDays(count: number, rate = '1.1'): QuotedDays {
  const days: [string, Record<string, string>][] = [];
  for (let day = dayAfter(bankDay(new Date()), -1); days.length < count; day = dayAfter(day, -1)) {
    if (![0, 6].includes(new Date(day).getUTCDay())) days.push([day, { USD: rate, JPY: '181.0600' }]);
  }
  return Object.fromEntries(days);
}

export const newestOf = (days: QuotedDays) => Object.keys(days).toSorted().at(-1) ?? '';
