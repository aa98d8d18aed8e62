import type { Provider } from '../providers/index.ts';
import type { OAuth2Credential, Tokens } from '../providers/oauth/index.ts';
import { isDiscovered } from './authorization.ts';
import type { Stored } from './stored.ts';

// What a provider says at an authorization or a refresh that the connection may do.

/** The scopes of what was chosen: of the services, or of all tools and datasets of a provider without services. */
function scopesOf({ services, tools, datasets }: Provider, chosenKeys: readonly string[]): readonly string[] {
  const chosen = services.filter(({ key }) => chosenKeys.includes(key));
  const scopes =
    services.length === 0
      ? [...tools, ...datasets].flatMap((one) => one.scopes)
      : chosen.flatMap((one) => [...one.scopes.read, ...one.scopes.write]);
  return [...new Set(scopes)];
}

/**
 * Whether the scopes that a person granted are good for nothing that was chosen: everything was unticked but what says who it is. Where
 * nothing takes a scope, any authorization is good for something.
 */
export function coversNothing(provider: Provider, chosenKeys: readonly string[], granted: readonly string[]): boolean {
  const wanted = scopesOf(provider, chosenKeys);
  return wanted.length > 0 && !wanted.some((scope) => granted.includes(scope));
}

/** Where the provider tells other scopes than the connection has; none are told by one that names none. */
export function changedScopes(
  stored: Pick<Stored, 'provider' | 'row'>,
  credential: OAuth2Credential,
  tokens: Tokens,
): Readonly<{ grantedScopes?: readonly string[]; scopesInUse?: readonly string[] }> {
  const { oauth2 } = stored.provider;
  const known = oauth2 === undefined || isDiscovered(oauth2) ? undefined : oauth2;
  const told = (known ? known.grantedScopes(tokens) : tokens.scopes) ?? [];
  const [now, before] = [new Set(told), new Set(credential.scopes)];
  const isSame = now.size === before.size && [...now].every((scope) => before.has(scope));
  if (now.size === 0 || isSame) return {};
  return { grantedScopes: [...now], scopesInUse: scopesOf(stored.provider, stored.row.integration.services) };
}
