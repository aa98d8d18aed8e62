import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { AgentContext } from './agent.ts';
import { execute, isOver, type ToolCall, timeoutMsOf, waitingText, withPaths } from './call.ts';
import { saveFiles } from './call_downloads.ts';
import { storeFiles } from './call_files.ts';
import type { Action, Execution } from './schemas.ts';

/** What a call says, as JSON. */
export function said(value: unknown): CallToolResult {
  return { content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value, null, 2) }] };
}

/** An action for a model: what it needs to go on, and what to do while it waits. */
export function toldAction(action: Action) {
  return isOver(action) ? { action } : { action, note: waitingText(action) };
}

/** With a link to each file, for programs that hand them on by themselves. */
function told(execution: Execution, saved: readonly string[]): CallToolResult {
  if (execution.kind === 'action') return said({ kind: execution.kind, ...toldAction(execution.action) });
  const links = execution.files.flatMap(({ name, contentType: mimeType }, index) => {
    const file = saved[index];
    return file === undefined
      ? []
      : [{ type: 'resource_link' as const, uri: pathToFileURL(file).href, name, mimeType }];
  });
  return { content: [...said(withPaths(execution, saved)).content, ...links] };
}

/** A call by a client of MCP. */
export type ClientCall = Omit<ToolCall, 'files'> &
  Readonly<{
    key: string;
    /** Paths on this machine by argument. */
    files?: Readonly<Record<string, string>> | undefined;
    /** Ends when the client no longer waits. */
    signal: AbortSignal;
  }>;

export type ClientCalls = Readonly<{
  /** @throws CommandError; the reason of the signal */
  call: (given: ClientCall) => Promise<CallToolResult>;
  /** After every call was broken off: removes the files of results, unless they have a folder of their own. */
  close: () => Promise<void>;
}>;

/** Calls of tools whose files are files of this machine, both ways. */
export function clientCalls(context: AgentContext): ClientCalls {
  const { stop, values } = context;
  let own: Promise<string> | undefined;
  const folder = () => {
    if (values.to !== undefined) return path.resolve(values.to);
    own ??= mkdtemp(path.join(tmpdir(), 'business-runner-mcp-'));
    return own;
  };
  const fallbackMs = timeoutMsOf(values);
  const open = new Set<Promise<unknown>>();

  async function run({ key, files = {}, signal: ofClient, timeoutMs = fallbackMs, ...call }: ClientCall) {
    const signal = AbortSignal.any([stop.signal, ofClient]);
    const invocationId = randomUUID();
    const place = { key, invocationId, signal };
    const stored = await storeFiles(context, place, Object.entries(files));
    const execution = await execute(context, place, { ...call, timeoutMs, ...stored });
    if (execution.kind === 'action' || execution.files.length === 0) return told(execution, []);
    const brought = { ...place, files: execution.files, folder: path.join(await folder(), invocationId) };
    return told(execution, await saveFiles(context, brought));
  }

  return {
    call(given) {
      const running = run(given);
      open.add(running);
      return running.finally(() => open.delete(running));
    },
    async close() {
      // Those that are broken off clear up behind themselves, which takes a moment.
      await Promise.allSettled(open);
      if (own) await rm(await own, { recursive: true, force: true });
    },
  };
}
