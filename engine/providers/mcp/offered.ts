import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { RequestOptions } from '@modelcontextprotocol/sdk/shared/protocol.js';
import { z } from 'zod';
import type { Discovery } from '../context.ts';
import { shownText } from '../texts.ts';
import { readTool } from './tools.ts';

const MAX_TOOLS = 200;

const page = z.object({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });

/** All pages, until there are enough. The SDK's own reader compiles each schema, which is what we do not do with a stranger's. */
async function list(client: Client, options: RequestOptions) {
  const { ResultSchema } = await import('@modelcontextprotocol/sdk/types.js');
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
}

/** What the server of a session offers in it: items are `{name, title, problem}`, and a tool with a problem cannot be enabled. */
export async function offeredTools(client: Client, options: RequestOptions): Promise<Discovery> {
  const { offered, truncated } = await list(client, options);
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
}
