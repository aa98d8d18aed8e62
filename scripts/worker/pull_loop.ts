import { setTimeout as sleep } from 'node:timers/promises';
import { type ChatClaim, type Claim, isChatClaim, isRetryable } from './api.ts';
import { performTurn } from './chat_turn.ts';
import { CommandNotFoundError, commandGate } from './command_gate.ts';
import type { WorkerContext } from './context.ts';
import type { RequestKind, WorkerOptions } from './options.ts';
import { backoffMs, errorText } from './retry.ts';
import { performTaskRun } from './task_run.ts';

const PULL_WAIT_MS = 20_000;

/** How many requests of which kinds run at a time. */
type Slots = Readonly<{ kinds: readonly RequestKind[]; concurrency: number }>;

/** Tasks may take hours: chats have slots of their own, so that no reply waits for a task. */
function slotsOf({ kinds, once, concurrency, chats }: WorkerOptions): Slots[] {
  if (once) return [{ kinds, concurrency: 1 }];
  return kinds.map((kind) => ({ kinds: [kind], concurrency: kind === 'chat' ? chats : concurrency }));
}

/** Whose work is pulled. npm hides ids where it repeats the command line: here they stand. */
export function startText({ workerId, url, kinds, organizationIds = [], profileKeys = [] }: WorkerOptions): string {
  const only = [...organizationIds.map((id) => `organization ${id}`), ...profileKeys.map((key) => `profile ${key}`)];
  const of = only.length === 0 ? '' : ` of ${only.join(', ')}`;
  return `worker ${workerId} pulls from ${url}: ${kinds.map((kind) => `${kind}s`).join(' and ')}${of}`;
}

/**
 * Pulls and performs runs, as many at a time as the options allow, until `drain` aborts; runs that have started are
 * finished. With `once` it ends after the first run. It waits for an API that is down. Returns whether the last run succeeded.
 * @throws ApiError where a repeat cannot help: a wrong token, or a filter that is refused; CommandNotFoundError when the first
 * start of the command says that it is not there.
 */
export async function pullLoop(given: Omit<WorkerContext, 'gate'> & { drain: AbortSignal }): Promise<boolean> {
  const { api, options, print } = given;
  const gate = commandGate();
  const worker = { ...given, gate };
  const failed = new AbortController();
  const drain = AbortSignal.any([given.drain, failed.signal, gate.broken]);
  let disconnected = false;
  let taken = 0;
  let idle = false;
  let succeeded = true;

  function puller({ kinds }: Slots) {
    let failures = 0;
    return async (limit: number): Promise<(Claim | ChatClaim)[]> => {
      const { workerId, organizationIds, profileKeys } = options;
      const body = { workerId, limit, waitMs: PULL_WAIT_MS, kinds, organizationIds, profileKeys };
      try {
        const claims = await api.pull(body, { signal: drain });
        if (disconnected) print(`reconnected to ${options.url}`);
        disconnected = false;
        failures = 0;
        if (claims.length === 0 && taken === 0 && !idle && !drain.aborted) {
          idle = true;
          print(`nothing to do yet: waiting for ${options.kinds.join('s or ')}s`);
        }
        return claims;
      } catch (error) {
        if (drain.aborted) return [];
        if (!isRetryable(error)) throw error;
        if (!disconnected) print(`no response from ${options.url}, retrying: ${errorText(error)}`);
        disconnected = true;
        await sleep(backoffMs(failures), undefined, { signal: drain }).catch(() => {});
        failures += 1;
        return [];
      }
    };
  }

  /** Of several first claims one is started at a time: what is not started is handed out again, and counts for nothing. */
  async function perform(claim: Claim | ChatClaim): Promise<boolean> {
    if (isChatClaim(claim) && options.llm) return performTurn(claim, worker);
    if (!(await gate.enter())) return false;
    try {
      return await (isChatClaim(claim) ? performTurn(claim, worker) : performTaskRun(claim, worker));
    } finally {
      gate.leave();
    }
  }

  async function fill(slots: Slots): Promise<void> {
    const pull = puller(slots);
    const running = new Set<Promise<void>>();
    function start(claim: Claim | ChatClaim): void {
      const done = perform(claim).then((result) => {
        succeeded = result;
        running.delete(done);
      });
      running.add(done);
    }
    try {
      while (!drain.aborted && !(options.once && taken > 0)) {
        const free = slots.concurrency - running.size;
        if (free === 0) await Promise.race(running);
        else {
          const claims = await pull(free);
          taken += claims.length;
          for (const claim of claims) start(claim);
        }
      }
    } catch (error) {
      // The other slots would be refused as well.
      failed.abort();
      throw error;
    } finally {
      await Promise.all(running);
    }
  }

  const results = await Promise.allSettled(slotsOf(options).map(fill));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
  if (gate.broken.aborted)
    throw new CommandNotFoundError('the command cannot be started: see above; nothing more is pulled');
  return options.once ? taken > 0 && succeeded : true;
}
