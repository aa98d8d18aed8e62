import { z } from 'zod';
import { ProviderError } from '../outgoing/index.ts';
import { accountBucket, defineProvider, unknownChoices } from '../provider.ts';
import { providerId, shownOrNull } from '../texts.ts';
import { credential, oauth1 } from './flow.ts';
import { hourlySpend } from './hourly_spend.ts';
import { accountsBucket, adsUrl, readAds } from './reads.ts';
import { MAX_ACCOUNTS, settings } from './settings.ts';
import { ADS, API, KEY } from './site.ts';
import { tools } from './tools.ts';

const user = z.object({ data: z.object({ id: z.string(), username: z.string() }) });

const accounts = z.object({
  data: z.array(
    z.object({
      id: providerId,
      name: shownOrNull,
      timezone: shownOrNull,
      approval_status: shownOrNull,
    }),
  ),
  next_cursor: z.string().nullish(),
});

export const xAds = defineProvider({
  key: KEY,
  title: 'X Ads',
  connections: ['oauth1'],
  oauth1,
  deploymentClient: 'xAds',
  origins: [API, ADS],
  services: [],
  settings: { schema: settings, required: true },
  credential,
  tools,
  datasets: [{ key: 'xads.hourly_spend', scopes: [], adapter: hourlySpend }],
  async verify(context, access) {
    const bucket = accountBucket(KEY, context, 5, 1 / 60);
    const { data } = await readAds({ context, access }, new URL(`${API}/2/users/me`), user, bucket);
    // A token is of one user for as long as it lives.
    if (data.id !== access.credential.userId) {
      throw new ProviderError(KEY, 'failed', 'The provider names another user than that of the authorization.');
    }
    return { subject: data.id, label: `@${data.username}` };
  },
  /** `{id, name, timeZone, approvalStatus}`; 5 requests in 15 minutes are allowed, so one page is as much as is read. */
  async discover(context, access) {
    const url = adsUrl('accounts', { count: MAX_ACCOUNTS });
    const { data, next_cursor: next } = await readAds({ context, access }, url, accounts, accountsBucket(context));
    const items = data.map((one) => ({
      id: one.id,
      name: one.name,
      timeZone: one.timezone,
      approvalStatus: one.approval_status?.toLowerCase() ?? null,
    }));
    return { items, truncated: typeof next === 'string' && next !== '' };
  },
  checkSettings({ accountIds }, { items }) {
    return unknownChoices('accountIds', accountIds, new Set(items.map(({ id }) => String(id))), 'ads account');
  },
});
