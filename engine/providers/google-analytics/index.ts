import { z } from 'zod';
import { googleOAuth, readAccount } from '../google/identity.ts';
import { oauth2Credential } from '../oauth/index.ts';
import { defineProvider, type ProviderContext, unknownChoices } from '../provider.ts';
import { shownOrNull } from '../texts.ts';
import { dailyTotals } from './daily_totals.ts';
import { periodUsers } from './period_users.ts';
import { MAX_PROPERTIES, settings } from './settings.ts';
import { KEY, readAdmin, SCOPE, site } from './site.ts';
import { tools } from './tools.ts';

/** Zone and currency stand with the property itself: a request each, so few at once. */
const AT_ONCE = 8;

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
const located = z.object({ timeZone: shownOrNull, currencyCode: shownOrNull });

type Found = Readonly<{ id: string; name: string | null; account: string | null }>;

async function properties(context: ProviderContext, token: string) {
  const found: Found[] = [];
  let pageToken: string | undefined;
  do {
    const query = new URLSearchParams({ pageSize: '200', ...(pageToken === undefined ? {} : { pageToken }) });
    const page = await readAdmin(context, token, `accountSummaries?${query}`, summaries);
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
  origins: site.origins,
  services: [],
  settings: { schema: settings, required: true },
  credential: oauth2Credential,
  tools,
  lookUp: 'properties',
  datasets: [
    { key: 'ga4.daily_totals', scopes: [SCOPE], adapter: dailyTotals },
    { key: 'ga4.period_users', scopes: [SCOPE], adapter: periodUsers },
  ],
  verify: (context, { credential }) => readAccount(site, context, credential),
  /** `{id, name, account, timeZone, currency}`, at most 200. */
  async discover(context, { credential: { accessToken } }) {
    const { found, truncated } = await properties(context, accessToken);
    const items: (Found & { timeZone: string | null; currency: string | null })[] = [];
    for (let at = 0; at < found.length; at += AT_ONCE) {
      const some = found.slice(at, at + AT_ONCE).map(async (one) => {
        const { timeZone, currencyCode } = await readAdmin(context, accessToken, `properties/${one.id}`, located);
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
