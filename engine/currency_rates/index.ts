export {
  bankDay,
  dayAfter,
  documentFor,
  type KnownRates,
  LOOKS,
  nextLook,
  type RatesDocument,
  ZONE,
} from './calendar.ts';
export { type CurrencyRatesClient, createCurrencyRatesClient } from './client.ts';
export type { DayRates } from './document.ts';
export { CurrencyRatesError, type CurrencyRatesReason } from './errors.ts';
