import { z } from 'zod';
import { defineProvider, type ProviderContext } from '../provider.ts';
import { shownText } from '../texts.ts';
import { oauth2 } from './authorization.ts';
import { serverTool } from './call.ts';
import { withMcp } from './session.ts';
import { type Connection, credential, KEY, serverOf, settings } from './site.ts';
import { readTool } from './tools.ts';

const MAX_TOOLS = 200;

const page = z.object({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });

/** All pages, until there are enough. The SDK's own reader compiles each schema, which is what we do not do with a stranger's. */
async function offeredTools(context: ProviderContext, access: Connection) {
  const { ResultSchema } = await import('@modelcontextprotocol/sdk/types.js');
  return withMcp(context, serverOf(access), async (client, options) => {
    const offered: unknown[] = [];
    const seen = new Set<string>();
    let cursor: string | undefined;
    do {
      const params = cursor === undefined ? {} : { cursor };
      const result = page.parse(await client.request({ method: 'tools/list', params }, ResultSchema, options));
      offered.push(...result.tools);
      cursor = result.nextCursor;
      // A cursor that comes again would have us ask for ever.
      if (cursor !== undefined && seen.has(cursor)) break;
      if (cursor !== undefined) seen.add(cursor);
    } while (cursor !== undefined && offered.length < MAX_TOOLS);
    return { offered: offered.slice(0, MAX_TOOLS), truncated: cursor !== undefined || offered.length > MAX_TOOLS };
  });
}

export const mcp = defineProvider({
  key: KEY,
  title: 'MCP server',
  connections: ['oauth2', 'none'],
  oauth2,
  services: [],
  settings: { schema: settings, required: true, beforeConnection: true, address: ({ serverUrl }) => serverUrl },
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
  /** `{name, title, problem}`; a tool with a problem cannot be enabled. */
  async discover(context, access) {
    const { offered, truncated } = await offeredTools(context, access);
    // Of two with one name the first counts: which of them a call would reach, nobody knows.
    const tools = [
      ...new Map(
        offered
          .map(readTool)
          .reverse()
          .map((tool) => [tool.name, tool]),
      ).values(),
    ].reverse();
    return {
      items: tools.map(({ name, title, problem }) => ({
        id: name,
        name,
        title: title === null ? null : shownText(title),
        problem,
      })),
      truncated,
      tools: tools.flatMap(({ tool }) => tool ?? []),
    };
  },
});
