import type { z } from 'zod';
import { googleSite } from '../google/identity.ts';
import { readMeasured } from '../measured.ts';
import { accountBucket, type ProviderContext } from '../provider.ts';

export const KEY = 'google-analytics';
export const SCOPE = 'https://www.googleapis.com/auth/analytics.readonly';
const ADMIN = 'https://analyticsadmin.googleapis.com';
const DATA = 'https://analyticsdata.googleapis.com';

export const site = googleSite(KEY, [ADMIN, DATA]);

const requestOf = (context: ProviderContext, token: string) => ({
  effect: 'read' as const,
  headers: { authorization: `Bearer ${token}` },
  signal: context.signal,
});

/** What properties there are, and what is set of them. */
export function readAdmin<S extends z.ZodType>(context: ProviderContext, token: string, path: string, schema: S) {
  const request = {
    ...requestOf(context, token),
    url: `${ADMIN}/v1beta/${path}`,
    // 600 a minute and user, and 1,200 a minute of the whole project.
    buckets: [
      accountBucket(KEY, context, 50, 10),
      { key: `${KEY}:project`, capacity: 100, perSecond: 20, isShared: true },
    ],
  };
  return context.client.json(site, request, schema);
}

/** A body makes it a POST, which changes nothing. */
function dataRequest(
  context: ProviderContext,
  token: string,
  { path, body }: Readonly<{ path: string; body?: object }>,
) {
  const { headers, ...rest } = requestOf(context, token);
  const post = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } } as const;
  return {
    ...rest,
    headers,
    ...(body === undefined ? {} : { ...post, body: JSON.stringify(body) }),
    url: `${DATA}/v1beta/${path}`,
    // Google counts tokens by the size of a report: what that comes to is only known by its 429.
    buckets: [accountBucket(`${KEY}:data`, context, 20, 2)],
  };
}

/** What was measured. */
export function readData<S extends z.ZodType>(
  context: ProviderContext,
  token: string,
  asked: Readonly<{ path: string; body?: object }>,
  schema: S,
) {
  return context.client.json(site, dataRequest(context, token, asked), schema);
}

/** A row of a report has a few hundred bytes. */
const MAX_REPORT_BYTES = 16 * 1024 * 1024;

/** A report, and how large it is. */
export function runReport<S extends z.ZodType>(
  context: ProviderContext,
  token: string,
  property: string,
  body: object,
  schema: S,
) {
  const request = dataRequest(context, token, { path: `properties/${property}:runReport`, body });
  return readMeasured(context, site, { ...request, maxBytes: MAX_REPORT_BYTES }, schema);
}
