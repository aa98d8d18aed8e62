// An MCP server by the official SDK, behind an authorization server that registers its clients.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { json } from '../../engine/providers/support.ts';
import { openAuthorizationServer } from '../../support/authorization_server.ts';
import type { TearDown } from '../../support/database.ts';

export type McpOptions = Readonly<{
  /** Clients that it knows beforehand: public ones, by their ids. */
  clients?: readonly string[];
  /** What its metadata says more. */
  metadata?: Readonly<Record<string, unknown>>;
  registers?: boolean;
}>;

export async function openMcpServer(t: TearDown, options: McpOptions = {}) {
  const { registers = true, clients = [], metadata = {} } = options;
  /** What the server wants of a token: for anything, and for calls of a tool. */
  const wanted = { scope: 'tools:read', callScope: undefined as string | undefined };
  /** What it says of itself in place of the truth. */
  const said: { resource?: string | undefined } = {};
  const requests: string[] = [];
  const tools = ['search'];
  const server = await openAuthorizationServer(t, {
    issuer: '',
    routes: {},
    scopes: [],
    features: {
      registration: { enabled: registers },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx: unknown, resource: string) => ({
          scope: 'tools:read tools:write',
          audience: resource,
          accessTokenFormat: 'opaque',
        }),
      },
    },
    configuration: { discovery: metadata },
  });
  const serverUrl = `${server.origin}/mcp`;
  const grants = new Set<string>();
  const clientIds = new Set<string>();
  const open = (redirectUris: readonly string[]) => {
    const provider = server.open(redirectUris, clients);
    provider.on('registration_create.success', (_context, client) => {
      clientIds.add((client as { clientId: string }).clientId);
    });
    server.before.push(async (req, res) => {
      const { pathname } = new URL(req.url ?? '', server.origin);
      if (pathname === '/reg' || pathname === '/token') requests.push(`${req.method} ${pathname}`);
      if (pathname !== '/mcp' && pathname !== '/resource') return false;
      requests.push(`${req.method} ${pathname}`);
      if (pathname === '/resource') {
        const servers = [server.issuer];
        const scopes = { authorization_servers: servers, scopes_supported: ['tools:read'] };
        json(res, 200, { resource: serverUrl, ...scopes, ...said });
        return true;
      }
      const token = await provider.AccessToken.find((req.headers.authorization ?? '').slice('Bearer '.length));
      const challenge = `Bearer resource_metadata="${server.origin}/resource", scope="${wanted.scope}"`;
      if (!token) {
        json(res, 401, {}, { 'www-authenticate': challenge });
        return true;
      }
      grants.add(token.grantId ?? '');
      const granted = (token.scope ?? '').split(' ');
      const text = Buffer.concat(await req.toArray()).toString();
      const body = text === '' ? undefined : JSON.parse(text);
      const scope = (body?.method === 'tools/call' ? wanted.callScope : undefined) ?? wanted.scope;
      if (!scope.split(' ').every((one) => granted.includes(one))) {
        json(res, 403, {}, { 'www-authenticate': `Bearer error="insufficient_scope", scope="${scope}"` });
        return true;
      }
      const mcp = new McpServer({ name: 'test', version: '1' });
      const content = [{ type: 'text' as const, text: 'found' }];
      for (const name of tools) mcp.registerTool(name, { description: 'Finds things.' }, () => ({ content }));
      const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined } as never);
      await mcp.connect(transport as never);
      await transport.handleRequest(req, res, body);
      return true;
    });
    return {
      /** The server takes back all that it has given. */
      async revoke(): Promise<void> {
        for (const grantId of grants) {
          await provider.RefreshToken.revokeByGrantId(grantId);
          await provider.AccessToken.revokeByGrantId(grantId);
        }
        grants.clear();
      },
      /** It no longer knows the clients that it has registered. @returns their ids */
      async forgetClients(): Promise<readonly string[]> {
        const forgotten = [...clientIds];
        for (const id of forgotten) await provider.Client.adapter.destroy(id);
        clientIds.clear();
        return forgotten;
      },
    };
  };
  return { server, wanted, said, requests, tools, serverUrl, open };
}
