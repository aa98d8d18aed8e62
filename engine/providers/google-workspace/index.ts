import { googleOAuth, readAccount } from '../google/identity.ts';
import { oauth2Credential } from '../oauth/index.ts';
import { type AccessMode, defineProvider } from '../provider.ts';
import { services } from './services.ts';
import { KEY, site } from './site.ts';
import { tools } from './tools.ts';

/** The union of what the chosen services take. */
function scopesOf(chosen: readonly string[], accessMode: AccessMode): readonly string[] {
  const effect = accessMode === 'full' ? 'write' : 'read';
  return [...new Set(services.filter(({ key }) => chosen.includes(key)).flatMap(({ scopes }) => scopes[effect]))];
}

export const googleWorkspace = defineProvider({
  key: KEY,
  title: 'Google Workspace',
  connections: ['oauth2'],
  oauth2: googleOAuth(KEY, scopesOf),
  deploymentClient: 'google',
  origins: site.origins,
  services,
  settings: null,
  credential: oauth2Credential,
  tools,
  datasets: [],
  verify: (context, { credential }) => readAccount(site, context, credential),
  /** `{service, read, write}`: people can grant less than was asked for. */
  async discover(context, { credential }) {
    const { grantedScopes = [] } = await readAccount(site, context, credential);
    const granted = (scopes: readonly string[]) => scopes.every((scope) => grantedScopes.includes(scope));
    const items = services.map(({ key, title, scopes }) => ({
      id: key,
      name: title,
      // Whoever may write reads with the same scope, where there is one for both.
      read: granted(scopes.read) || granted(scopes.write),
      write: granted(scopes.write),
    }));
    return { items, truncated: false };
  },
});
