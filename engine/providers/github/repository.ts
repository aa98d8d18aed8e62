import type { CollectCall, DiscoverCall, FoundSource } from '../dataset.ts';
import { ProviderError } from '../outgoing/index.ts';
import { type At, inSettings } from './arguments.ts';
import { type Credential, caseless, type Settings } from './connection.ts';

export type Collecting = CollectCall<Credential, Settings>;

/** A source a repository, by its name as the settings have it. GitHub has no time zone. */
export async function repositorySources({
  access: { settings },
}: DiscoverCall<Credential, Settings>): Promise<readonly FoundSource[]> {
  return (settings?.repositories ?? []).map((name) => ({
    resourceId: caseless(`${settings?.owner}/${name}`),
    environment: 'live',
    timezone: null,
  }));
}

/** The repository of a source. @throws ProviderError where the settings have stopped naming it */
export function repositoryOf({ source, access }: Collecting): At {
  const [owner = '', repo = ''] = source.resourceId.split('/');
  if (inSettings({ owner, repo }, access.settings).length === 0) return { owner, repo };
  throw new ProviderError('github', 'not_found', 'The repository is none of the settings.', { isOurs: true });
}
