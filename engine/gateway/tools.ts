import { Problem } from '../db/problem.ts';
import { type ProviderContext, providers } from '../providers/index.ts';
import { withTotal } from '../providers/outgoing/index.ts';
import type { ToolRuntime } from '../providers/tool.ts';
import type { Begun } from './gateway.ts';

/** How long a call of a provider may take where its caller says nothing else, and at most. */
export const CALL_MS = 60_000;

/** Whoever waits no longer than that learns nothing of the provider by it. */
export const isShort = (timeoutMs: number) => timeoutMs < CALL_MS;

type Known = Pick<Begun, 'integration' | 'tool'>;

/** @throws Problem 404 where this version does not know what does it */
export function runtimeOf({ integration, tool }: Known): ToolRuntime {
  const runtime = providers.get(integration.provider)?.runtime(tool);
  if (runtime) return runtime;
  throw new Problem(404, 'tool_not_found', 'This version has no such tool.');
}

/** Arguments as the tool takes them. @throws Problem 400 with an issue a field */
export function argumentsOf(runtime: ToolRuntime, given: unknown, { integration }: Known): unknown {
  const parsed = runtime.parse(given, integration.settings);
  if ('args' in parsed) return parsed.args;
  const issues = parsed.issues.map(({ path, message, code }) => ({
    path: ['arguments', ...path.map(String)].join('.'),
    message,
    code,
  }));
  throw new Problem(400, 'validation_failed', 'The arguments are not those of the tool.', issues);
}

/** The context whose requests may take as long as the call. */
export function within(context: ProviderContext, timeoutMs: number): Readonly<{ context: ProviderContext }> {
  return { context: { ...context, client: withTotal(context.client, timeoutMs) } };
}
