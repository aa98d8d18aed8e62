import { z } from 'zod';
import { maskedId } from '../mask.ts';
import { defineProvider } from '../provider.ts';
import { accountOf, modeOf } from './account.ts';
import { balanceTransactions } from './balance.ts';
import { credential, ORIGIN } from './site.ts';
import { subscriptions } from './subscriptions.ts';
import { tools } from './tools.ts';

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
    { key: 'stripe.balance_tx', scopes: [], adapter: balanceTransactions },
    { key: 'stripe.subscription_snapshot', scopes: [], adapter: subscriptions },
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
