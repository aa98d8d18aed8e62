import type { GitHost } from '../provider.ts';
import { readRefusal, WEB } from './site.ts';

type Settings = Readonly<{ owner: string; repositories: readonly string[] }>;

/** GitHub does not tell its names apart by case. */
const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();

/** GitHub takes a token as the password of this name, whatever kind of token it is. */
export function gitHost<C>(secretOf: (credential: C) => string): GitHost<C, Settings> {
  return {
    site: { provider: 'github', origins: [WEB], readRefusal },
    remote({ credential, settings }, owner, repository) {
      // Clients write the name with the suffix too, which no repository may have.
      const name = repository.replace(/\.git$/i, '');
      const named = settings?.repositories.find((one) => isSame(one, name));
      if (!settings || named === undefined || !isSame(settings.owner, owner)) return undefined;
      return {
        name: `${settings.owner}/${named}`,
        url: `${WEB}/${settings.owner}/${named}.git`,
        authorization: `Basic ${Buffer.from(`x-access-token:${secretOf(credential)}`).toString('base64')}`,
      };
    },
  };
}
