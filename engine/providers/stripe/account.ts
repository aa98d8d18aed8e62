import { z } from 'zod';
import { zoneName } from '../../schedules/index.ts';
import type { DiscoverCall, FoundSource } from '../dataset.ts';
import { ProviderError } from '../outgoing/index.ts';
import type { ProviderContext } from '../provider.ts';
import { providerId, shownOrNull } from '../texts.ts';
import { type Credential, ORIGIN, requestOf, site } from './site.ts';

const account = z.object({
  id: providerId,
  country: shownOrNull,
  default_currency: shownOrNull,
  settings: z
    .object({ dashboard: z.object({ display_name: shownOrNull, timezone: z.string().nullish() }).nullish() })
    .nullish(),
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
export async function accountOf(context: ProviderContext, given: Credential): Promise<z.output<typeof account>> {
  try {
    return await readAccount(context, given);
  } catch (error) {
    const [, id] = /^rk_(?:live|test)_5(1[A-Za-z0-9]{15})/.exec(given.apiKey) ?? [];
    if (!(error instanceof ProviderError) || error.reason !== 'forbidden' || id === undefined) throw error;
    return { id: `acct_${id}`, country: null, default_currency: null };
  }
}

export const modeOf = ({ apiKey }: Credential) => (apiKey.startsWith('rk_live_') ? 'live' : 'test');

/** The account, in the mode of the key, on the clock of its dashboard where the key may read that. */
export async function sources({ context, access }: DiscoverCall<Credential>): Promise<readonly FoundSource[]> {
  const { id, settings } = await accountOf(context, access.credential);
  const timezone = zoneName(settings?.dashboard?.timezone ?? '') ?? null;
  return [{ resourceId: id, environment: modeOf(access.credential), timezone }];
}
