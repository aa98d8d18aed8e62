// An MCP server on loopback without sessions, whose tools are what a test says they are.
import { json, openServer } from '../engine/providers/support.ts';
import type { TearDown } from './database.ts';

export const SEARCH = { name: 'search', description: 'Finds things.', inputSchema: { type: 'object' } };

export async function openToolServer(t: TearDown) {
  const state: { tools: readonly unknown[]; isDown: boolean } = { tools: [SEARCH], isDown: false };
  const server = await openServer(t, (call, res) => {
    if (state.isDown) return void json(res, 503, {});
    if (call.method !== 'POST') return void res.writeHead(405).end();
    const { id, method } = JSON.parse(call.body) as { id?: number; method: string };
    if (id === undefined) return void res.writeHead(202).end();
    const serverInfo = { name: 'test', version: '1' };
    const results: Readonly<Record<string, unknown>> = {
      initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo },
      'tools/list': { tools: state.tools },
      'tools/call': { content: [{ type: 'text', text: 'found' }] },
    };
    return { jsonrpc: '2.0', id, result: results[method] };
  });
  return {
    state,
    settings: { kind: 'mcp', serverUrl: `${server.origin}/mcp` },
    /** How often a tool was called. */
    called: () => server.calls.filter(({ body }) => body.includes('"tools/call"')).length,
  };
}
