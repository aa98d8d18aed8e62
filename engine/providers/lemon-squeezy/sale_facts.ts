import { z } from 'zod';
import { fromMinorUnits } from '../../amounts.ts';
import type { Columns, Fact, FactValue } from '../dataset.ts';
import { currency, isoTime, word } from '../fact_fields.ts';
import { placed, recordId, reference } from './list.ts';

export const SALE_COLUMNS = {
  /** `order`; `renewal`: an invoice of a subscription after its first; `refund`: of one of these. */
  kind: 'text',
  /** Of a refund, what was paid back: `order:1`, `invoice:1`. */
  record: 'text',
  /** Of a refund, that of what was paid back when it was first seen. */
  status: 'text',
  product: 'text',
  customer: 'text',
  currency: 'text',
  total: 'amount',
  subtotal: 'amount',
  tax: 'amount',
  discount: 'amount',
  /**
   * Of a refund: all that had been paid back of the record by then. What one refund paid is the difference to the next smaller one of
   * the record, which lies in the same month.
   */
  cumulative: 'amount',
  /** Of a refund: the provider says when it was. Else it is dated by the change that it was first seen with. */
  date_known: 'flag',
} as const satisfies Columns;

const sold = {
  ...placed,
  customer_id: reference.nullish(),
  currency,
  status: word,
  subtotal: z.int(),
  discount_total: z.int(),
  tax: z.int(),
  total: z.int(),
  refunded: z.boolean().nullish(),
  refunded_at: isoTime.nullish(),
  refunded_amount: z.int().min(0).nullish(),
  created_at: isoTime,
  updated_at: isoTime.nullish(),
};

export const order = z.object({
  id: recordId,
  attributes: z.object({ ...sold, first_order_item: z.object({ product_id: reference.nullish() }).nullish() }),
});

export const invoice = z.object({
  id: recordId,
  attributes: z.object({ ...sold, billing_reason: word, subscription_id: reference }),
});

export type Sale = Readonly<{
  kind: 'order' | 'renewal';
  record: string;
  product: string | null;
  attributes: Omit<z.output<typeof order>['attributes'], 'first_order_item'>;
}>;

/** Of what is told of one refund again and again, the date counts that was told first. */
const LATEST = Date.UTC(9999, 11, 31);

const nothing = { total: null, subtotal: null, tax: null, discount: null };
const noRefund = { cumulative: null, date_known: null };

/** All that was paid back so far, in minor units. A part of it leaves `refunded` false and, as documented, the status `paid`. */
const paidBack = ({ refunded, refunded_amount: amount, total }: Sale['attributes']) =>
  Math.max(amount ?? 0, refunded ? total : 0);

/** The sale, and what was paid back of it. @param pseudonym of a customer's id */
export function saleFacts({ kind, record, product, attributes }: Sale, pseudonym: (id: string) => string): Fact[] {
  const { customer_id: customer, created_at: createdAt } = attributes;
  const updatedAt = attributes.updated_at ?? createdAt;
  const amountOf = (minor: number) => fromMinorUnits(minor, attributes.currency);
  const shared: Record<'record' | 'status' | 'product' | 'customer' | 'currency', FactValue> = {
    record,
    status: attributes.status,
    product,
    customer: customer ? pseudonym(customer) : null,
    currency: attributes.currency,
  };
  const sale: Fact = {
    key: record,
    effectiveAt: createdAt,
    revision: updatedAt,
    values: {
      ...shared,
      ...noRefund,
      kind,
      total: amountOf(attributes.total),
      subtotal: amountOf(attributes.subtotal),
      tax: amountOf(attributes.tax),
      discount: amountOf(attributes.discount_total),
    },
  };
  const cumulative = paidBack(attributes);
  if (cumulative === 0) return [sale];
  const refundedAt = attributes.refunded_at ?? null;
  const refund: Fact = {
    key: `refund:${record}:${cumulative}`,
    effectiveAt: refundedAt ?? updatedAt,
    contentAt: createdAt,
    revision: refundedAt === null ? LATEST - updatedAt : LATEST,
    values: {
      ...nothing,
      ...shared,
      kind: 'refund',
      cumulative: amountOf(cumulative),
      date_known: refundedAt !== null,
    },
  };
  return [sale, refund];
}
