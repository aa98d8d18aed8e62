import { secretTexts } from '../../secret_values.ts';
import { ProviderError, undone } from '../outgoing/index.ts';
import type { ProviderContext, StoredTool } from '../provider.ts';
import { CursorError, type ToolCall, ToolChangedError, type ToolRuntime } from '../tool.ts';
import { argumentIssues } from './arguments.ts';
import { offeredTools } from './offered.ts';
import { type CallResult, keptData, readData, readResult } from './result.ts';
import { callOptions, withMcp } from './session.ts';
import { type Connection, KEY, serverOf } from './site.ts';

const MAX_SHOWN_TEXT = 300;
const MAX_SHOWN = 1_500;
/** Control and format characters: they move or hide others. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

type Arguments = Readonly<Record<string, unknown>>;
const isArguments = (value: unknown): value is Arguments =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * One request that calls the tool, sent once, if the server offers it in this session as its owner enabled it.
 * @throws ProviderError, ToolChangedError, the signal's reason
 */
async function call(
  context: ProviderContext,
  access: Connection,
  { key: name, digest, effect }: Pick<StoredTool, 'key' | 'digest' | 'effect'>,
  args: Arguments,
): Promise<unknown> {
  const { ResultSchema } = await import('@modelcontextprotocol/sdk/types.js');
  let isSent = false;
  const session = withMcp(context, serverOf(access), async (client, options) => {
    const discovery = await offeredTools(client, options);
    const found = discovery.tools?.find(({ key }) => key === name);
    if (found?.digest === undefined || found.digest !== digest) return { changed: discovery, result: undefined };
    const request = { method: 'tools/call', params: { name, arguments: args } };
    context.signal?.throwIfAborted();
    isSent = true;
    return { changed: undefined, result: await client.request(request, ResultSchema, callOptions(options)) };
  });
  const { changed, result } = await session.catch((error: unknown) => {
    throw effect === 'read' || isSent ? error : undone(error, KEY, context.signal);
  });
  if (changed) throw new ToolChangedError(KEY, changed);
  return result;
}

function parsedResult(given: unknown): CallResult {
  try {
    return readResult(given);
  } catch {
    throw new ProviderError(KEY, 'failed', 'The server responds in a way that is not that of MCP.');
  }
}

const cut = (text: string, length: number) =>
  text.length <= length ? text : `${text.slice(0, length).toWellFormed()}… (${text.length} characters)`;

/** As JSON, whose long texts are cut, so that each argument is seen. */
function shown(args: Arguments): string {
  const text = JSON.stringify(args, (_, value) => (typeof value === 'string' ? cut(value, MAX_SHOWN_TEXT) : value));
  const escaped = text.replace(UNSEEN, (one) => `\\u{${one.codePointAt(0)?.toString(16)}}`);
  return cut(escaped, MAX_SHOWN);
}

/** What does a tool of a server, which is what its owner says of it: a read, or a write. */
export function serverTool({ key, effect, inputSchema, digest }: StoredTool): ToolRuntime {
  const parse: ToolRuntime['parse'] = (given) => {
    if (!isArguments(given)) return { issues: [{ path: [], message: 'must be an object', code: 'invalid_type' }] };
    const issues = argumentIssues(inputSchema, given);
    return issues.length > 0 ? { issues } : { args: given };
  };
  const ask = ({ context, access, args }: ToolCall) =>
    call(context, access as Connection, { key, digest, effect }, args as Arguments);
  if (effect === 'read') {
    return {
      effect,
      parse,
      async read(given) {
        // A call has one result, and no pages.
        if (given.cursor !== undefined) throw new CursorError();
        return { data: readData(parsedResult(await ask(given))) };
      },
    };
  }
  return {
    effect,
    parse,
    summary({ args, settings }) {
      const { serverUrl } = (settings as Connection['settings']) ?? {};
      const host = serverUrl === undefined ? 'the MCP server' : new URL(serverUrl).host;
      return `Call the tool ${key} of ${host} with ${shown(args as Arguments)}`;
    },
    async execute(given) {
      const result = parsedResult(await ask(given));
      // Its text may repeat what was sent to it.
      if (result.isError) {
        throw new ProviderError(KEY, 'failed', 'The tool says that it failed.', {
          code: 'tool_error',
          isRefusal: true,
        });
      }
      const { accessToken } = serverOf(given.access as Connection);
      const secrets = secretTexts(given.args as Arguments, inputSchema);
      return keptData(result, accessToken === undefined ? secrets : [...secrets, accessToken]);
    },
  };
}
