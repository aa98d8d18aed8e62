import { z } from 'zod';
import { googleOAuth, googleSite, readAccount } from '../google/identity.ts';
import { oauth2Credential } from '../oauth/index.ts';
import { accountBucket, defineProvider, type ProviderContext, unknownChoices } from '../provider.ts';
import { choices, shownOrNull } from '../texts.ts';
import { tools } from './tools.ts';

const KEY = 'google-analytics';
const ADMIN = 'https://analyticsadmin.googleapis.com';
const SCOPE = 'https://www.googleapis.com/auth/analytics.readonly';
const MAX_PROPERTIES = 200;
/** Zone and currency stand with the property itself: a request each, so few at once. */
const AT_ONCE = 8;

const site = googleSite(KEY, [ADMIN]);

const settings = z.strictObject({
  kind: z.literal('google_analytics'),
  propertyIds: choices(z.string().regex(/^\d{1,20}$/, 'must be the id of a property'), MAX_PROPERTIES),
});

const summaries = z.object({
  accountSummaries: z
    .array(
      z.object({
        displayName: shownOrNull,
        propertySummaries: z
          .array(z.object({ property: z.string().regex(/^properties\/\d{1,20}$/), displayName: shownOrNull }))
          .default([]),
      }),
    )
    .default([]),
  nextPageToken: z.string().optional(),
});
const property = z.object({ timeZone: shownOrNull, currencyCode: shownOrNull });

type Found = Readonly<{ id: string; name: string | null; account: string | null }>;

function read<S extends z.ZodType>(context: ProviderContext, token: string, path: string, schema: S) {
  const request = {
    effect: 'read',
    url: `${ADMIN}/v1beta/${path}`,
    headers: { authorization: `Bearer ${token}` },
    // 600 a minute and user, and 1,200 a minute of the whole project.
    buckets: [
      accountBucket(KEY, context, 50, 10),
      { key: `${KEY}:project`, capacity: 100, perSecond: 20, isShared: true },
    ],
    signal: context.signal,
  } as const;
  return context.client.json(site, request, schema);
}

async function properties(context: ProviderContext, token: string) {
  const found: Found[] = [];
  let pageToken: string | undefined;
  do {
    const query = new URLSearchParams({ pageSize: '200', ...(pageToken === undefined ? {} : { pageToken }) });
    const page = await read(context, token, `accountSummaries?${query}`, summaries);
    for (const { displayName, propertySummaries } of page.accountSummaries) {
      for (const one of propertySummaries) {
        const id = one.property.slice('properties/'.length);
        found.push({ id, name: one.displayName, account: displayName });
      }
    }
    // A token that comes again would have us ask for ever.
    pageToken = page.nextPageToken === pageToken ? undefined : page.nextPageToken;
  } while (pageToken !== undefined && pageToken !== '' && found.length < MAX_PROPERTIES);
  return { found: found.slice(0, MAX_PROPERTIES), truncated: found.length > MAX_PROPERTIES || Boolean(pageToken) };
}

export const googleAnalytics = defineProvider({
  key: KEY,
  title: 'Google Analytics',
  connections: ['oauth2'],
  oauth2: googleOAuth(KEY, () => [SCOPE]),
  deploymentClient: 'google',
  services: [],
  settings: { schema: settings, required: true },
  credential: oauth2Credential,
  tools,
  lookUp: 'properties',
  datasets: [
    { key: 'ga4.daily_totals', scopes: [SCOPE] },
    { key: 'ga4.period_users', scopes: [SCOPE] },
  ],
  verify: (context, { credential }) => readAccount(site, context, credential),
  /** `{id, name, account, timeZone, currency}`, at most 200. */
  async discover(context, { credential: { accessToken } }) {
    const { found, truncated } = await properties(context, accessToken);
    const items: (Found & { timeZone: string | null; currency: string | null })[] = [];
    for (let at = 0; at < found.length; at += AT_ONCE) {
      const some = found.slice(at, at + AT_ONCE).map(async (one) => {
        const { timeZone, currencyCode } = await read(context, accessToken, `properties/${one.id}`, property);
        return { ...one, timeZone, currency: currencyCode };
      });
      items.push(...(await Promise.all(some)));
    }
    return { items, truncated };
  },
  checkSettings({ propertyIds }, discovery) {
    return unknownChoices('propertyIds', propertyIds, new Set(discovery.items.map(({ id }) => String(id))), 'property');
  },
});
