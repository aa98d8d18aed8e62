import type { ServerResponse } from 'node:http';
import type * as Tap from 'tap';
import type { Effect, Provider, ProviderContext } from '../../../engine/providers/index.ts';
import type { ProviderClient, ProviderReason } from '../../../engine/providers/outgoing/index.ts';
import type { ArgumentIssue, LookUpResult, ReadResult, ToolFile, ToolRuntime } from '../../../engine/providers/tool.ts';
import { fails, json } from './support.ts';

// Calls tools as the gateway and the job do: arguments are checked first, by the schema of a read or of a write.

export const ACTION = '01992f3e-8a10-7c55-9f41-3b0d6a52c7e8';

export type Connected = Readonly<{
  client: ProviderClient;
  credential: unknown;
  settings: unknown;
  signal?: AbortSignal;
  deploymentClient?: ProviderContext['deploymentClient'];
  /** Of a server's own tool. */
  inputSchema?: Readonly<Record<string, unknown>>;
  digest?: string | undefined;
}>;

type Files = Readonly<Record<string, ToolFile>>;

export function toolsOf(provider: Provider, connected: Connected) {
  const { client, credential, settings, signal, deploymentClient, inputSchema = {}, digest } = connected;
  const context: ProviderContext = { client, account: 'i1', signal, deploymentClient };
  const access = { credential, settings };

  function runtime(key: string, effect: Effect): ToolRuntime {
    const found = provider.runtime({ key, effect, inputSchema, digest });
    if (!found) throw new Error(`${key} is no ${effect}`);
    return found;
  }

  function argumentsOf(tool: ToolRuntime, given: unknown): unknown {
    const parsed = tool.parse(given, settings);
    if ('issues' in parsed) throw new Error(JSON.stringify(parsed.issues));
    return parsed.args;
  }

  function write(key: string, given: unknown, files: Files = {}) {
    const tool = runtime(key, 'write');
    if (tool.effect !== 'write') throw new Error(`${key} is no write`);
    return { tool, call: { context, access, args: argumentsOf(tool, given), actionId: ACTION, files } };
  }

  return {
    /** Names of the arguments that are wrong. */
    wrong(key: string, given: unknown, withSettings = settings): string[] {
      const effect = provider.tools.find((tool) => tool.key === key)?.effect ?? 'read';
      const parsed = runtime(key, effect).parse(given, withSettings);
      return 'issues' in parsed ? parsed.issues.map(({ path }) => path.join('.')) : [];
    },
    issues(key: string, effect: Effect, given: unknown): readonly ArgumentIssue[] {
      const parsed = runtime(key, effect).parse(given, settings);
      return 'issues' in parsed ? parsed.issues : [];
    },
    async read(key: string, given: unknown, cursor?: string): Promise<ReadResult> {
      const tool = runtime(key, 'read');
      if (tool.effect !== 'read') throw new Error(`${key} is no read`);
      return tool.read({ context, access, args: argumentsOf(tool, given), cursor });
    },
    async execute(key: string, given: unknown, files?: Files): Promise<unknown> {
      const { tool, call } = write(key, given, files);
      return tool.execute(call);
    },
    async lookUp(key: string, given: unknown): Promise<LookUpResult> {
      const { tool, call } = write(key, given);
      if (!tool.lookUp) throw new Error(`${key} cannot be looked up`);
      return tool.lookUp(call);
    },
    canLookUp: (key: string, given: unknown) => write(key, given).tool.lookUp !== undefined,
    summary(key: string, given: unknown, files?: Files): string {
      const { tool, call } = write(key, given, files);
      return tool.summary({ args: call.args, settings, files: call.files });
    },
    riskOf(key: string, given: unknown) {
      const { tool, call } = write(key, given);
      return tool.riskOf?.(call.args, settings);
    },
  };
}

type Fault = Readonly<{
  what: string;
  reply: (res: ServerResponse) => void;
  reason: ProviderReason;
  /** A write that meets it was not done. */
  isUndone: boolean;
  facts?: Readonly<Record<string, unknown>>;
}>;

const PLANTED = 'planted-4711';

/** How servers fail. What they say stays with them. */
export const FAULTS: readonly Fault[] = [
  {
    what: '401',
    reply: (res) => json(res, 401, { message: PLANTED }),
    reason: 'rejected',
    isUndone: true,
    facts: { status: 401 },
  },
  {
    what: '403',
    reply: (res) => json(res, 403, { message: PLANTED }),
    reason: 'forbidden',
    isUndone: true,
    facts: { status: 403 },
  },
  {
    what: '404',
    reply: (res) => json(res, 404, { message: PLANTED }),
    reason: 'not_found',
    isUndone: true,
    facts: { status: 404 },
  },
  {
    what: '429',
    reply: (res) => json(res, 429, { message: PLANTED }, { 'retry-after': '40' }),
    reason: 'rate_limited',
    isUndone: true,
    facts: { status: 429 },
  },
  {
    what: '503',
    reply: (res) => json(res, 503, { message: PLANTED }, { 'retry-after': '40' }),
    reason: 'unavailable',
    isUndone: false,
    facts: { status: 503 },
  },
  {
    what: 'a broken connection',
    reply: (res) => {
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
      res.write(`{"${PLANTED}":`, () => res.destroy());
    },
    reason: 'unavailable',
    isUndone: false,
  },
  {
    what: 'a page',
    reply: (res) => res.writeHead(200, { 'content-type': 'text/html' }).end(`<p>${PLANTED}</p>`),
    reason: 'failed',
    isUndone: false,
  },
  {
    what: 'another shape',
    reply: (res) => json(res, 200, [PLANTED]),
    reason: 'failed',
    isUndone: false,
  },
];

/** Calls once for each fault; `send` has the fault's server respond to it. A write is sent once whatever happens. */
export async function failsAsDocumented(
  t: Tap.Test,
  what: string,
  effect: Effect,
  send: (reply: Fault['reply']) => Promise<Readonly<{ done: Promise<unknown>; sent: () => number }>>,
  faults = FAULTS,
): Promise<void> {
  for (const fault of faults) {
    const { done, sent } = await send(fault.reply);
    const error = await fails(t, done, fault.reason, `${what}: ${fault.what}`);
    if (fault.facts) t.match(error, fault.facts, `${what}: ${fault.what}`);
    t.notMatch(JSON.stringify([error, error.message]), PLANTED, `${what}: ${fault.what} is not repeated`);
    if (fault.reason === 'rate_limited') t.ok(error.retryNotBefore, `${what}: when to come again`);
    if (effect === 'read') continue;
    t.equal(sent(), 1, `${what}: ${fault.what}, sent once`);
    const { status = 0, isRefusal } = error;
    t.equal(isRefusal || (status >= 400 && status < 500), fault.isUndone, `${what}: ${fault.what}, done or not`);
  }
}

/** Each tool that a provider declares has something that does it. */
export function runsAll(t: Pick<Tap.Test, 'equal'>, provider: Provider): void {
  for (const tool of provider.tools) t.equal(provider.runtime(tool)?.effect, tool.effect, tool.key);
}
