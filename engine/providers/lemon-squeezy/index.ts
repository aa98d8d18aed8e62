import { z } from 'zod';
import { maskedEmail } from '../mask.ts';
import type { Site } from '../outgoing/index.ts';
import { accountBucket, defineProvider, type ProviderContext, unknownChoices } from '../provider.ts';
import { choices, providerId, shownOrNull } from '../texts.ts';
import { tools } from './tools.ts';

const ORIGIN = 'https://api.lemonsqueezy.com';
const MAX_STORES = 200;
const PAGE_SIZE = 100;

const credential = z.strictObject({
  kind: z.literal('api_key'),
  apiKey: z
    .string()
    .max(4_000)
    .regex(/^[\x21-\x7e]{20,}$/, 'must be an API key of Lemon Squeezy'),
});
type Credential = z.output<typeof credential>;

const settings = z.strictObject({
  kind: z.literal('lemon_squeezy'),
  /** Empty: no store is allowed. */
  storeIds: choices(z.string().regex(/^\d{1,20}$/, 'must be the id of a store'), MAX_STORES),
});

/** JSON:API: errors have a status and at times a code. */
const refusal = z.object({ errors: z.array(z.object({ code: z.string().optional() })).min(1) });

const site: Site = {
  provider: 'lemon-squeezy',
  origins: [ORIGIN],
  readRefusal: ({ json }) => ({ code: refusal.safeParse(json).data?.errors[0]?.code }),
};

const user = z.object({ data: z.object({ id: z.string().min(1), attributes: z.object({ email: z.string() }) }) });

const stores = z.object({
  data: z.array(
    z.object({
      id: providerId,
      attributes: z.object({ name: shownOrNull, slug: shownOrNull, domain: shownOrNull, currency: shownOrNull }),
    }),
  ),
  meta: z.object({ page: z.object({ total: z.int().min(0) }) }),
});

function read<S extends z.ZodType>(context: ProviderContext, { apiKey }: Credential, path: string, schema: S) {
  const headers = { authorization: `Bearer ${apiKey}`, accept: 'application/vnd.api+json' };
  // 300 calls a minute.
  const buckets = [accountBucket('lemon-squeezy', context, 60, 5)];
  const request = { effect: 'read', url: `${ORIGIN}${path}`, headers, buckets, signal: context.signal } as const;
  return context.client.json(site, request, schema);
}

export const lemonSqueezy = defineProvider({
  key: 'lemon-squeezy',
  title: 'Lemon Squeezy',
  connections: ['api_key'],
  origins: [ORIGIN],
  services: [],
  settings: { schema: settings, required: true },
  credential,
  tools,
  lookUp: 'stores',
  datasets: ['ls.orders', 'ls.refunds', 'ls.subscription_invoices', 'ls.subscription_snapshot'].map((key) => ({
    key,
    scopes: [],
  })),
  async verify(context, access) {
    const { data } = await read(context, access.credential, '/v1/users/me', user);
    return { subject: data.id, label: maskedEmail(data.attributes.email) };
  },
  /** `{id, name, slug, domain, currency}`, at most 200. */
  async discover(context, access) {
    const items: Record<string, string | null>[] = [];
    let total = Number.POSITIVE_INFINITY;
    for (let page = 1; items.length < Math.min(total, MAX_STORES); page += 1) {
      const query = new URLSearchParams({ 'page[number]': String(page), 'page[size]': String(PAGE_SIZE) });
      const found = await read(context, access.credential, `/v1/stores?${query}`, stores);
      total = found.meta.page.total;
      items.push(...found.data.map(({ id, attributes }) => ({ id, ...attributes })));
      // A count that its pages do not bear out would have us ask for ever.
      if (found.data.length === 0) break;
    }
    const kept = items.slice(0, MAX_STORES);
    return { items: kept, truncated: total > kept.length };
  },
  checkSettings({ storeIds }, discovery) {
    return unknownChoices('storeIds', storeIds, new Set(discovery.items.map(({ id }) => String(id))), 'store');
  },
});
