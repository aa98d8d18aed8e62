import { z } from 'zod';
import { type Bucket, ProviderError } from '../outgoing/index.ts';
import { accountBucket, defineProvider, type ProviderContext, unknownChoices } from '../provider.ts';
import { choices, providerId, shownOrNull } from '../texts.ts';
import { credential, oauth1 } from './flow.ts';
import { ADS, API, KEY, signed, site } from './site.ts';
import { tools } from './tools.ts';

const MAX_ACCOUNTS = 1_000;

const settings = z.strictObject({
  kind: z.literal('x_ads'),
  accountIds: choices(z.string().regex(/^[a-z0-9]{1,40}$/, 'must be the id of an ads account'), MAX_ACCOUNTS),
});

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

function read<S extends z.ZodType>(
  context: ProviderContext,
  { token, secret }: z.output<typeof credential>,
  url: URL,
  bucket: Bucket,
  schema: S,
): Promise<z.output<S>> {
  const request = signed(context, { method: 'GET', url, user: { token, secret } });
  return context.client.json(site, { ...request, buckets: [bucket] }, schema);
}

export const xAds = defineProvider({
  key: KEY,
  title: 'X Ads',
  connections: ['oauth1'],
  oauth1,
  deploymentClient: 'xAds',
  services: [],
  settings: { schema: settings, required: true },
  credential,
  tools,
  datasets: [{ key: 'xads.hourly_spend', scopes: [] }],
  async verify(context, access) {
    const bucket = accountBucket(KEY, context, 5, 1 / 60);
    const { data } = await read(context, access.credential, new URL(`${API}/2/users/me`), bucket, user);
    // A token is of one user for as long as it lives.
    if (data.id !== access.credential.userId) {
      throw new ProviderError(KEY, 'failed', 'The provider names another user than that of the authorization.');
    }
    return { subject: data.id, label: `@${data.username}` };
  },
  /** `{id, name, timeZone, approvalStatus}`; 5 requests in 15 minutes are allowed, so one page is as much as is read. */
  async discover(context, access) {
    const url = new URL(`${ADS}/12/accounts`);
    url.searchParams.set('count', String(MAX_ACCOUNTS));
    const bucket: Bucket = { key: `${KEY}:accounts:${context.account}`, capacity: 5, perSecond: 5 / 900 };
    const { data, next_cursor: next } = await read(context, access.credential, url, bucket, accounts);
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
