import { defineProvider } from '../provider.ts';
import { oauth2 } from './authorization.ts';
import { serverTool } from './call.ts';
import { offeredTools } from './offered.ts';
import { withMcp } from './session.ts';
import { credential, KEY, serverOf, settings } from './site.ts';

export const mcp = defineProvider({
  key: KEY,
  title: 'MCP server',
  connections: ['oauth2', 'none'],
  oauth2,
  services: [],
  settings: { schema: settings, required: true, beforeConnection: true, address: 'serverUrl' },
  credential,
  tools: [],
  serverTool,
  datasets: [],
  /** A server does not say whose a token is, so that the account is the server. */
  async verify(context, access) {
    const { serverUrl } = serverOf(access);
    await withMcp(context, serverOf(access), async () => {});
    const { host } = new URL(serverUrl);
    const grantedScopes = access.credential.kind === 'oauth2' ? access.credential.scopes : undefined;
    return { subject: serverUrl, label: host, grantedScopes };
  },
  discover: (context, access) => withMcp(context, serverOf(access), offeredTools),
});
