import { json, openServer } from '../engine/providers/support.ts';
import type { TearDown } from './database.ts';

/** An MCP server that asks for an authorization, and says where to get one; nobody gets one there. @returns its address */
export async function openProtectedServer(t: TearDown): Promise<string> {
  const server = await openServer(t, ({ url, method }, res) => {
    if (method === 'POST') {
      json(res, 401, {}, { 'www-authenticate': `Bearer resource_metadata="${server.origin}/resource"` });
      return undefined;
    }
    if (url.pathname === '/resource') {
      return { resource: `${server.origin}/mcp`, authorization_servers: [server.origin] };
    }
    return {
      issuer: server.origin,
      authorization_endpoint: `${server.origin}/authorize`,
      token_endpoint: `${server.origin}/token`,
      code_challenge_methods_supported: ['S256'],
    };
  });
  return `${server.origin}/mcp`;
}
