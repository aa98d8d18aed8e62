import { z } from 'zod';
import { formatAmount, roundedQuotient } from '../../amounts.ts';
import type { CoverageState } from '../dataset.ts';
import { ProviderError } from '../outgoing/index.ts';
import { type Collecting, propertyOf } from './property.ts';
import { KEY, runReport } from './site.ts';

// What is collected of a report: the values of its rows, and how far they can be relied on.

const header = z.object({ name: z.string() });
const text = z.object({ value: z.string().max(300).default('') });
const number = z.object({ value: z.string().max(100) });
const list = z.array(z.unknown()).nullish();

const report = z.object({
  dimensionHeaders: z.array(header).default([]),
  metricHeaders: z.array(header).default([]),
  rows: z.array(z.object({ dimensionValues: z.array(text).default([]), metricValues: z.array(number) })).default([]),
  rowCount: z.int().min(0).default(0),
  metadata: z
    .object({
      timeZone: z.string().nullish(),
      currencyCode: z
        .string()
        .regex(/^[A-Z]{3}$/)
        .nullish(),
      emptyReason: z.string().nullish(),
      subjectToThresholding: z.boolean().nullish(),
      dataLossFromOtherRow: z.boolean().nullish(),
      samplingMetadatas: list,
      dataTruncationReasons: list,
      schemaRestrictionResponse: z.object({ activeMetricRestrictions: list }).nullish(),
    })
    .default({}),
});
type Metadata = z.output<typeof report>['metadata'];

/** `missing`: nothing is known of this time. */
export type Quality = Readonly<{ state: CoverageState | 'missing'; reason?: string }>;

function qualityOf(metadata: Metadata, isEmpty: boolean): Quality {
  const has = (given: readonly unknown[] | null | undefined) => (given ?? []).length > 0;
  if (has(metadata.schemaRestrictionResponse?.activeMetricRestrictions)) {
    return { state: 'unavailable', reason: 'schema_restriction' };
  }
  if (isEmpty && metadata.emptyReason) return { state: 'missing' };
  if (metadata.subjectToThresholding) return { state: 'suppressed', reason: 'thresholding' };
  if (metadata.dataLossFromOtherRow) return { state: 'partial', reason: 'other_row' };
  if (has(metadata.samplingMetadatas)) return { state: 'partial', reason: 'sampling' };
  if (has(metadata.dataTruncationReasons)) return { state: 'partial', reason: 'truncation' };
  return { state: 'complete' };
}

const failure = (message: string) => new ProviderError(KEY, 'failed', message);
const otherForm = () => failure('The provider responds with a report of another form than the documented one.');

/** Zones have more than one name. */
const zoneOf = (name: string) => new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone;

function isSameZone(one: string, other: string): boolean {
  try {
    return one === other || zoneOf(one) === zoneOf(other);
  } catch {
    return false;
  }
}

export type Row = Readonly<{ dimensions: readonly string[]; metrics: readonly string[] }>;

export type Asked = Readonly<{
  dateRange: Readonly<{ startDate: string; endDate: string }>;
  dimensions: readonly string[];
  metrics: readonly string[];
  /** By which dimensions, in which order; a name with `-` before it turns it around. */
  order?: readonly string[];
  limit: number;
  offset?: number;
  /** That of the series, where it is known. */
  currency?: string | undefined;
}>;

function orderOf(name: string) {
  const isTurned = name.startsWith('-');
  return { dimension: { dimensionName: isTurned ? name.slice(1) : name }, desc: isTurned };
}

/** @throws ProviderError, also where the property has another time zone or currency than the series */
export async function readRows(call: Collecting, asked: Asked) {
  const { dateRange, dimensions, metrics, order = [], limit, offset = 0, currency } = asked;
  const body = {
    dateRanges: [dateRange],
    dimensions: dimensions.map((name) => ({ name })),
    metrics: metrics.map((name) => ({ name })),
    orderBys: order.map(orderOf),
    // Both are texts in JSON: Google's 64-bit integers.
    limit: String(limit),
    offset: String(offset),
  };
  const { context, access, source } = call;
  const token = access.credential.accessToken;
  const { data, bytes } = await runReport(context, token, propertyOf(call), body, report);
  const { metadata, rowCount, rows } = data;
  if (metadata.timeZone && !isSameZone(metadata.timeZone, source.timezone)) {
    throw failure('The property has another time zone than before, so that this is another series.');
  }
  if (metadata.currencyCode && currency !== undefined && metadata.currencyCode !== currency) {
    throw failure('The property has another currency than before, so that this is another series.');
  }
  const named = (headers: typeof data.metricHeaders) => headers.map(({ name }) => name).join();
  if (rows.length > 0) {
    const isAsked = named(data.dimensionHeaders) === dimensions.join() && named(data.metricHeaders) === metrics.join();
    if (!isAsked || rows.length > limit) throw otherForm();
  }
  const read = rows.map(({ dimensionValues, metricValues }): Row => {
    if (dimensionValues.length !== dimensions.length || metricValues.length !== metrics.length) throw otherForm();
    return { dimensions: dimensionValues.map(({ value }) => value), metrics: metricValues.map(({ value }) => value) };
  });
  return {
    rows: read,
    /** How many there are, on all pages. */
    rowCount: Math.max(rowCount, offset + rows.length),
    bytes,
    quality: qualityOf(metadata, rows.length === 0 && rowCount === 0),
    currency: currency ?? metadata.currencyCode ?? undefined,
  };
}

/** @throws ProviderError */
export function countOf(value: string | undefined): number {
  const count = /^\d{1,16}$/.test(value ?? '') ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(count)) throw otherForm();
  return count;
}

const SCALE = 18;

/** A sum of money, which Google computes as a floating-point number: rounded to 18 digits behind the point. @throws ProviderError */
export function amountOf(value: string | undefined): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d{1,40})(?:\.(\d{1,40}))?(?:[eE]([+-]?\d{1,2}))?$/.exec(value ?? '') ?? [];
  if (whole === '') throw otherForm();
  const digits = BigInt(`${sign}${whole}${fraction}`);
  const shift = SCALE - fraction.length + Number(exponent);
  try {
    return formatAmount(shift >= 0 ? digits * 10n ** BigInt(shift) : roundedQuotient(digits, 10n ** BigInt(-shift)));
  } catch {
    throw otherForm();
  }
}
