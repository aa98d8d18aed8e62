import { z } from 'zod';

// What a report is asked by and what it responds with, in the shapes of the Data API (properties.runReport).

const name = z.string().regex(/^[A-Za-z0-9_:]{1,100}$/);
const named = z.strictObject({ name });
const day = z
  .string()
  .regex(/^(?:\d{4}-\d{2}-\d{2}|today|yesterday|\d{1,4}daysAgo)$/)
  .describe('YYYY-MM-DD, today, yesterday or NdaysAgo, in the time zone of the property');

const value = z.string().max(500);
const matchType = z.enum(['EXACT', 'BEGINS_WITH', 'ENDS_WITH', 'CONTAINS', 'FULL_REGEXP', 'PARTIAL_REGEXP']);
const number = z.union([
  z.strictObject({ int64Value: z.string().regex(/^-?\d{1,18}$/) }),
  z.strictObject({ doubleValue: z.number() }),
]);
const operation = z.enum(['EQUAL', 'LESS_THAN', 'LESS_THAN_OR_EQUAL', 'GREATER_THAN', 'GREATER_THAN_OR_EQUAL']);
const filter = z.strictObject({
  fieldName: name,
  stringFilter: z
    .strictObject({ value, matchType: matchType.optional(), caseSensitive: z.boolean().optional() })
    .optional(),
  inListFilter: z
    .strictObject({ values: z.array(value).min(1).max(100), caseSensitive: z.boolean().optional() })
    .optional(),
  numericFilter: z.strictObject({ operation, value: number }).optional(),
  betweenFilter: z.strictObject({ fromValue: number, toValue: number }).optional(),
});
const leaf = z.union([z.strictObject({ filter }), z.strictObject({ notExpression: z.strictObject({ filter }) })]);
const group = z.strictObject({ expressions: z.array(leaf).min(1).max(20) });
/** Groups of the provider may be nested; these are not. */
const expression = z.union([leaf, z.strictObject({ andGroup: group }), z.strictObject({ orGroup: group })]);

const order = z.strictObject({
  desc: z.boolean().optional(),
  metric: z.strictObject({ metricName: name }).optional(),
  dimension: z.strictObject({ dimensionName: name }).optional(),
});

export const report = {
  dateRanges: z
    .array(z.strictObject({ startDate: day, endDate: day }))
    .min(1)
    .max(4),
  metrics: z.array(named).min(1).max(10),
  dimensions: z.array(named).max(9).optional(),
  dimensionFilter: expression.optional(),
  metricFilter: expression.optional(),
  orderBys: z.array(order).max(5).optional(),
  keepEmptyRows: z.boolean().optional(),
  limit: z.int().min(1).max(200).optional().describe('rows a page, by default 200'),
};

const header = z.object({ name: z.string(), type: z.string().optional() });
const values = z.array(z.object({ value: z.string().optional() })).default([]);

export const reported = z.object({
  dimensionHeaders: z.array(header).default([]),
  metricHeaders: z.array(header).default([]),
  rows: z.array(z.object({ dimensionValues: values, metricValues: values })).default([]),
  rowCount: z.int().min(0).default(0),
  // Whether anything is missing stands here: samples, thresholds, a row of others.
  metadata: z.record(z.string(), z.unknown()).optional(),
});

const described = z.object({
  apiName: z.string(),
  uiName: z.string().optional(),
  description: z.string().optional(),
  category: z.string().optional(),
  type: z.string().optional(),
});
export const catalog = z.object({
  dimensions: z.array(described).default([]),
  metrics: z.array(described).default([]),
});

export const property = z.object({
  name: z.string().optional(),
  displayName: z.string().optional(),
  timeZone: z.string().optional(),
  currencyCode: z.string().optional(),
  industryCategory: z.string().optional(),
  serviceLevel: z.string().optional(),
  createTime: z.string().optional(),
});
