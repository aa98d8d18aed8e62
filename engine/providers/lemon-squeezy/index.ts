import { z } from 'zod';
import { maskedEmail } from '../mask.ts';
import { defineProvider, unknownChoices } from '../provider.ts';
import { providerId, shownOrNull } from '../texts.ts';
import { credential, KEY, MAX_STORES, ORIGIN, read, settings } from './api.ts';
import { sales } from './sales.ts';
import { subscriptions } from './subscriptions.ts';
import { tools } from './tools.ts';

const PAGE_SIZE = 100;

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

export const lemonSqueezy = defineProvider({
  key: KEY,
  title: 'Lemon Squeezy',
  connections: ['api_key'],
  origins: [ORIGIN],
  services: [],
  settings: { schema: settings, required: true },
  credential,
  tools,
  lookUp: 'stores',
  datasets: [
    { key: 'ls.sales', scopes: [], adapter: sales },
    { key: 'ls.subscription_snapshot', scopes: [], adapter: subscriptions },
  ],
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
