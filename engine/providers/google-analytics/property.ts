import { z } from 'zod';
import type { CollectCall, DiscoverCall, FoundSource } from '../dataset.ts';
import type { OAuth2Credential } from '../oauth/index.ts';
import { ProviderError } from '../outgoing/index.ts';
import { checkProperty, type Settings } from './settings.ts';
import { KEY, readAdmin } from './site.ts';

export type Collecting = CollectCall<OAuth2Credential, Settings>;

const AT_ONCE = 8;
const located = z.object({ timeZone: z.string().min(1).max(63) });

/** Those of the settings that the connection reaches, by their ids. */
export async function propertySources({
  context,
  access,
}: DiscoverCall<OAuth2Credential, Settings>): Promise<readonly FoundSource[]> {
  const found: FoundSource[] = [];
  const chosen = access.settings?.propertyIds ?? [];
  for (let at = 0; at < chosen.length; at += AT_ONCE) {
    const some = chosen.slice(at, at + AT_ONCE).map(async (resourceId): Promise<FoundSource[]> => {
      try {
        const { timeZone } = await readAdmin(
          context,
          access.credential.accessToken,
          `properties/${resourceId}`,
          located,
        );
        return [{ resourceId, environment: 'live', timezone: timeZone }];
      } catch (error) {
        // Without this one the others can be read.
        const isGone = error instanceof ProviderError && (error.reason === 'not_found' || error.reason === 'forbidden');
        if (isGone) return [];
        throw error;
      }
    });
    found.push(...(await Promise.all(some)).flat());
  }
  return found;
}

/** The property of a source. @throws ProviderError where the settings have stopped naming it */
export function propertyOf({ source, access }: Collecting): string {
  const { resourceId } = source;
  if (checkProperty({ propertyId: resourceId }, access.settings).length === 0) return resourceId;
  throw new ProviderError(KEY, 'not_found', 'The property is none of the settings.', { isOurs: true });
}
