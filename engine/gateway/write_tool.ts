import { type OpenConnection, withoutCredential } from '../integrations/index.ts';
import { cutShort } from '../providers/outgoing/index.ts';
import type { WriteCall, Writes } from '../providers/tool.ts';
import type { Storage } from '../storage/index.ts';
import { type Executor, keptResult, type LeasedAction, LOOK_UP_MS } from './executor.ts';
import { actionFiles } from './files.ts';
import { isShort, within } from './tools.ts';

type Prepared = Readonly<{ runtime: Writes; args: unknown } | { obstacle: string }>;

function prepare(
  { provider, integration }: OpenConnection,
  { action, toolDigest }: Pick<LeasedAction, 'action' | 'toolDigest'>,
): Prepared {
  const { tool, arguments: given, arguments_schema: schema } = action;
  // Arguments were checked at the proposal: a server's own tool that has another schema by now is another tool. What is kept of the
  // schema names the secrets.
  const runtime = provider.runtime({
    key: tool,
    effect: 'write',
    inputSchema: schema ?? {},
    digest: toolDigest ?? undefined,
  });
  if (runtime?.effect !== 'write') return { obstacle: 'tool_changed' };
  const parsed = runtime.parse(given, integration.settings);
  return 'args' in parsed ? { runtime, args: parsed.args } : { obstacle: 'settings_changed' };
}

/** Executes writes by tools. */
export function toolExecutor(storage: Storage, { action, toolDigest, files }: LeasedAction): Executor {
  const timeoutMs = action.timeout_ms;

  function callOf({ context, access }: OpenConnection, args: unknown, ms: number): WriteCall {
    const signal = AbortSignal.timeout(ms);
    const opened = actionFiles(storage, files, signal);
    return { ...within({ ...context, signal }, ms), access, args, actionId: action.id, files: opened };
  }

  return {
    timeoutMs,
    async prepare(connection) {
      const prepared = prepare(connection, { action, toolDigest });
      if ('obstacle' in prepared) return prepared;
      const { runtime, args } = prepared;
      return {
        async send(current) {
          const endMs = performance.now() + timeoutMs;
          const result = await runtime.execute(callOf(current, args, timeoutMs)).catch((error: unknown) => {
            throw isShort(timeoutMs) ? cutShort(error, endMs) : error;
          });
          return { outcome: 'succeeded', result: keptResult(withoutCredential(result, current.secrets)) };
        },
        close: async () => {},
      };
    },
    async lookUp(connection) {
      const prepared = prepare(connection, { action, toolDigest });
      // Nobody but a person can say.
      if ('obstacle' in prepared || !prepared.runtime.lookUp) return { outcome: 'none', final: true };
      const found = await prepared.runtime.lookUp(callOf(connection, prepared.args, LOOK_UP_MS));
      if (found.outcome !== 'found') return found;
      return { outcome: 'found', result: keptResult(withoutCredential(found.result, connection.secrets)) };
    },
  };
}
