import { z } from 'zod';
import type { CollectCall, DiscoverCall, FoundSource } from '../dataset.ts';
import { ProviderError } from '../outgoing/index.ts';
import type { Credential } from './flow.ts';
import { accountsBucket, adsUrl, readAds } from './reads.ts';
import { checkAccount, type Settings } from './settings.ts';
import { KEY } from './site.ts';

export type Collecting = CollectCall<Credential, Settings>;

/** So many accounts can be named in one request. */
const AT_ONCE = 200;
const accounts = z.object({ data: z.array(z.object({ id: z.string(), timezone: z.string().max(63).nullish() })) });

/** The ads accounts of the settings that the connection reaches. */
export async function accountSources(call: DiscoverCall<Credential, Settings>): Promise<readonly FoundSource[]> {
  const chosen = call.access.settings?.accountIds ?? [];
  const found: FoundSource[] = [];
  for (let at = 0; at < chosen.length; at += AT_ONCE) {
    const some = chosen.slice(at, at + AT_ONCE);
    const url = adsUrl('accounts', { account_ids: some, count: AT_ONCE, with_deleted: 'true' });
    const { data } = await readAds(call, url, accounts, accountsBucket(call.context));
    for (const { id, timezone } of data) {
      if (some.includes(id)) found.push({ resourceId: id, environment: 'live', timezone: timezone || null });
    }
  }
  return found;
}

/** The ads account of a source. @throws ProviderError where the settings have stopped naming it */
export function accountOf({ source, access }: Collecting): string {
  const { resourceId } = source;
  if (checkAccount({ accountId: resourceId }, access.settings).length === 0) return resourceId;
  throw new ProviderError(KEY, 'not_found', 'The ads account is none of the settings.', { isOurs: true });
}
