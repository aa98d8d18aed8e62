import type { ServerResponse } from 'node:http';
import type * as Tap from 'tap';
import { googleAnalytics } from '../../../engine/providers/google-analytics/index.ts';
import { datasetOf } from './dataset_calls.ts';
import { type Call, json, openClient, openServer } from './support.ts';

// A property as Google's server reports it: rows of the days asked for, in the order asked for, page by page.

export const PLANTED = 'planted-4711';

export type Row = { date: string; country: string; device: string; channel: string; metrics: readonly string[] };

export type Asked = Readonly<{
  dateRanges: readonly Readonly<{ startDate: string; endDate: string }>[];
  dimensions: readonly Readonly<{ name: string }>[];
  metrics: readonly Readonly<{ name: string }>[];
  orderBys: readonly Readonly<{ dimension: { dimensionName: string }; desc?: boolean }>[];
  limit: string;
  offset: string;
}>;

const SCOPE = 'https://www.googleapis.com/auth/analytics.readonly';
const credential = { kind: 'oauth2', accessToken: 'at', refreshToken: 'rt', expiresAt: null, scopes: [SCOPE] };

type Options = Readonly<{
  rows?: readonly Row[];
  timezone?: string;
  metadata?: (asked: Asked) => object;
  /** Rows of a page, where that is less than what is asked for. */
  cap?: number;
  users?: (range: Asked['dateRanges'][number]) => readonly string[] | undefined;
  before?: (asked: Asked, rows: Row[]) => void;
  instead?: (call: Call, res: ServerResponse) => boolean;
  propertyIds?: readonly string[];
}>;

const fieldOf: Readonly<Record<string, 'date' | 'country' | 'device' | 'channel'>> = {
  date: 'date',
  country: 'country',
  deviceCategory: 'device',
  sessionDefaultChannelGroup: 'channel',
};

export async function openProperty(test: Tap.Test, options: Options = {}) {
  const rows = [...(options.rows ?? [])];
  const { timezone = 'Europe/Berlin' } = options;
  const reports: Asked[] = [];

  function report(asked: Asked) {
    reports.push(asked);
    options.before?.(asked, rows);
    const [range = { startDate: '', endDate: '' }] = asked.dateRanges;
    const headers = {
      dimensionHeaders: asked.dimensions,
      metricHeaders: asked.metrics.map(({ name }) => ({ name, type: 'TYPE_INTEGER' })),
      metadata: { timeZone: timezone, currencyCode: 'EUR', note: PLANTED, ...options.metadata?.(asked) },
      kind: 'analyticsData#runReport',
    };
    const valued = (values: readonly string[]) => values.map((value) => (value === '' ? {} : { value }));
    if (asked.dimensions.length === 0) {
      const users = options.users?.(range);
      return users ? { ...headers, rows: [{ metricValues: valued(users) }], rowCount: 1 } : headers;
    }
    const all = rows.filter(({ date }) => date >= range.startDate && date <= range.endDate);
    for (const { dimension, desc } of [...asked.orderBys].reverse()) {
      const field = fieldOf[dimension.dimensionName] ?? 'date';
      all.sort((one, other) => (desc ? -1 : 1) * (one[field] < other[field] ? -1 : Number(one[field] > other[field])));
    }
    const size = Math.min(Number(asked.limit), options.cap ?? Number.POSITIVE_INFINITY);
    const here = all.slice(Number(asked.offset), Number(asked.offset) + size);
    return {
      ...headers,
      rows: here.map((row) => ({
        dimensionValues: valued([row.date.replaceAll('-', ''), row.country, row.device, row.channel]),
        metricValues: valued(row.metrics),
      })),
      rowCount: all.length,
    };
  }

  const server = await openServer(test, (call, res) => {
    if (options.instead?.(call, res)) return;
    const { pathname } = call.url;
    if (pathname === '/v1beta/properties/7') {
      json(res, 200, { name: 'properties/7', displayName: PLANTED, timeZone: timezone, currencyCode: 'EUR' });
    } else if (pathname === '/v1beta/properties/7:runReport') {
      json(res, 200, report(JSON.parse(call.body)));
    } else json(res, 403, { error: { status: 'PERMISSION_DENIED', message: PLANTED } });
  });
  const origins = ['https://analyticsadmin.googleapis.com', 'https://analyticsdata.googleapis.com'];
  const client = openClient(test, Object.fromEntries(origins.map((origin) => [origin, server.origin])));
  const settings = { kind: 'google_analytics', propertyIds: options.propertyIds ?? ['7'] };
  const dataset = (key: string) => datasetOf(googleAnalytics, key, { client, credential, settings });
  return { server, client, rows, reports, dataset };
}
