import { createHash } from 'node:crypto';
import type { CallToolResult, Tool } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import type { AgentContext } from './agent.ts';
import { CommandError, EXIT } from './errors.ts';
import type { ClientCalls } from './mcp_calls.ts';
import type { AgentIntegration, Capability } from './schemas.ts';
import { integrationsOf } from './tools.ts';

/** What every client takes as a name. */
const MAX_NAME = 64;
const DIGEST = 8;

/** "web-shop" and "stripe.charges.list" → "web-shop__stripe_charges_list"; a long one is cut, and ends in a digest. */
export function nameOf(key: string, tool: string): string {
  const name = `${key}__${tool}`.replace(/[^A-Za-z0-9_-]/g, '_');
  if (name.length <= MAX_NAME) return name;
  const digest = createHash('sha256').update(`${key} ${tool}`).digest('hex').slice(0, DIGEST);
  return `${name.slice(0, MAX_NAME - DIGEST - 1)}_${digest}`;
}

type Place = Readonly<{ key: string; capability: Capability }>;

function shownTool(name: string, { name: integration }: AgentIntegration, { key, capability }: Place): Tool {
  const { tool, effect, risk, inputSchema } = capability;
  const isRead = effect === 'read';
  const does = isRead ? 'Reads.' : `Proposes an action (risk ${risk}).`;
  return {
    name,
    description: `${tool} of ${integration} (${key}). ${does}`,
    inputSchema: { ...inputSchema, type: 'object' },
    annotations: { readOnlyHint: isRead },
  };
}

/** Each tool of each integration under a name of its own, with the schema of its arguments. */
export function providerTools(context: AgentContext, calls: ClientCalls) {
  const places = new Map<string, Place>();

  async function list(): Promise<Tool[]> {
    places.clear();
    const shown: Tool[] = [];
    for (const integration of await integrationsOf(context)) {
      for (const capability of integration.capabilities) {
        const place = { key: integration.key, capability };
        const name = nameOf(place.key, capability.tool);
        // "a.b" and "a_b" of one integration: call_tool has both.
        if (places.has(name)) continue;
        places.set(name, place);
        shown.push(shownTool(name, integration, place));
      }
    }
    return shown;
  }

  return {
    list,
    /** @throws CommandError */
    async call(name: string, args: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<CallToolResult> {
      // It may have been enabled since the client has read the list.
      if (!places.has(name)) await list();
      const place = places.get(name);
      if (!place) throw new CommandError(EXIT.notFound, `there is no tool ${JSON.stringify(name)}`);
      const { key, capability } = place;
      return calls.call({ key, tool: capability.tool, arguments: z.record(z.string(), z.json()).parse(args), signal });
    },
  };
}
