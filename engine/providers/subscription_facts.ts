import { z } from 'zod';
import { type CurrencyDigits, fromMinorUnits } from '../amounts.ts';
import type { Columns, Fact } from './dataset.ts';
import { localDay } from './periods.ts';

// Facts of a picture of all subscriptions, one a priced item of a subscription: the same of all providers, so that metrics are, too.

export const SUBSCRIPTION_COLUMNS = {
  subscription: 'text',
  status: 'text',
  price: 'text',
  quantity: 'count',
  /** What one of them costs an interval. Null: no single amount says it. */
  unit_amount: 'amount',
  currency: 'text',
  /** `day`, `week`, `month` or `year`. */
  interval: 'text',
  interval_count: 'count',
  /** What is due is no multiple of `unit_amount`. */
  tiered: 'flag',
  /** What is due follows use, and is not known before. */
  metered: 'flag',
} as const satisfies Columns;

/** A picture of one moment, on the day of its source. */
export const moment = z.object({ at: z.int(), day: z.iso.date() });
export type Moment = z.output<typeof moment>;

export type SubscriptionItem = Readonly<{
  item: string;
  subscription: string;
  status: string;
  price: string | null;
  quantity: number | null;
  /** In minor units of the currency. */
  unitMinor: number | string | null;
  currency: string;
  interval: string | null;
  intervalCount: number | null;
  isTiered: boolean;
  isMetered: boolean;
}>;

export function momentOf(timezone: string, now: Date): Moment {
  const at = now.getTime();
  return { at, day: localDay(timezone, at).day };
}

/** The day that a complete picture stands for. */
export function pictured(timezone: string, { at }: Moment) {
  const { start, end } = localDay(timezone, at);
  return [{ start, end, state: 'complete' }] as const;
}

/** Of two pictures of one day the later one stands in place of the earlier one, item by item; `effectiveAt` tells them apart. */
export function subscriptionFact(given: SubscriptionItem, { at, day }: Moment, digits?: CurrencyDigits): Fact {
  const { item, unitMinor, currency, intervalCount, isTiered, isMetered, ...rest } = given;
  return {
    key: `${day}:${item}`,
    effectiveAt: at,
    revision: null,
    values: {
      ...rest,
      unit_amount: unitMinor === null ? null : fromMinorUnits(unitMinor, currency, digits),
      currency,
      interval_count: intervalCount,
      tiered: isTiered,
      metered: isMetered,
    },
  };
}
