import { z } from 'zod';
import { maskedId } from '../mask.ts';
import { ProviderError } from '../outgoing/index.ts';
import { defineProvider, type ProviderContext } from '../provider.ts';
import { providerId, shownOrNull } from '../texts.ts';
import { type Credential, credential, ORIGIN, requestOf, site } from './site.ts';
import { tools } from './tools.ts';

const account = z.object({
  id: providerId,
  country: shownOrNull,
  default_currency: shownOrNull,
  settings: z.object({ dashboard: z.object({ display_name: shownOrNull }).nullish() }).nullish(),
});

function readAccount(context: ProviderContext, given: Credential) {
  return context.client.json(
    site,
    { ...requestOf(context, given), effect: 'read', url: `${ORIGIN}/v1/account` },
    account,
  );
}

/**
 * A restricted key may read its account only where its owner let it. Without that it is accepted all the same (403 says so, where
 * 401 would refuse it), and it carries the id of its account: `rk_live_51AbC…` is one of `acct_1AbC…`.
 */
async function accountOf(context: ProviderContext, given: Credential): Promise<z.output<typeof account>> {
  try {
    return await readAccount(context, given);
  } catch (error) {
    const [, id] = /^rk_(?:live|test)_5(1[A-Za-z0-9]{15})/.exec(given.apiKey) ?? [];
    if (!(error instanceof ProviderError) || error.reason !== 'forbidden' || id === undefined) throw error;
    return { id: `acct_${id}`, country: null, default_currency: null };
  }
}

const modeOf = ({ apiKey }: Credential) => (apiKey.startsWith('rk_live_') ? 'live' : 'test');

export const stripe = defineProvider({
  key: 'stripe',
  title: 'Stripe',
  connections: ['api_key'],
  origins: [ORIGIN],
  services: [],
  settings: { schema: z.strictObject({ kind: z.literal('stripe') }), required: false },
  credential,
  tools,
  datasets: [
    { key: 'stripe.balance_tx', scopes: [] },
    { key: 'stripe.subscription_snapshot', scopes: [] },
  ],
  async verify(context, access) {
    const { id } = await accountOf(context, access.credential);
    const mode = modeOf(access.credential);
    // The same account holds other things in each of its modes.
    return { subject: `${id}:${mode}`, label: `${maskedId(id)} (${mode})` };
  },
  async discover(context, access) {
    const found = await accountOf(context, access.credential);
    const item = {
      // The account is recognized by it, and not shown.
      id: maskedId(found.id),
      name: found.settings?.dashboard?.display_name ?? null,
      mode: modeOf(access.credential),
      country: found.country,
      currency: found.default_currency?.toUpperCase() ?? null,
    };
    return { items: [item], truncated: false };
  },
});
