import { z } from 'zod';
import type { Site } from '../outgoing/index.ts';
import { accountBucket, type ProviderContext } from '../provider.ts';

export const ORIGIN = 'https://api.stripe.com';
/** What we read follows this version, whatever the account's default is. */
const VERSION = '2025-09-30.clover';

export const credential = z.strictObject({
  kind: z.literal('api_key'),
  // A secret key may do everything: it is refused before it is sent anywhere.
  apiKey: z
    .string()
    .max(300)
    .regex(/^rk_(?:live|test)_[A-Za-z0-9]+$/, 'must be a restricted key, which begins with rk_'),
});
export type Credential = z.output<typeof credential>;

const refusal = z.object({ error: z.object({ code: z.string().optional(), type: z.string().optional() }) });

export const site: Site = {
  provider: 'stripe',
  origins: [ORIGIN],
  readRefusal({ json }) {
    const { error } = refusal.safeParse(json).data ?? {};
    return { code: error?.code ?? error?.type };
  },
};

/** What every request has. */
export function requestOf(context: ProviderContext, { apiKey }: Credential) {
  return {
    headers: { authorization: `Bearer ${apiKey}`, 'stripe-version': VERSION },
    buckets: [accountBucket('stripe', context, 25, 25)],
    signal: context.signal,
  };
}
