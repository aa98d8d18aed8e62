import { setTimeout as sleep } from 'node:timers/promises';
import { type ChatClaim, type Claim, isChatClaim, mayBeSentAgain } from './api.ts';
import { performTurn } from './chat.ts';
import type { RequestKind, WorkerOptions } from './options.ts';
import { backoffMs, reasonOf } from './retry.ts';
import { performRun } from './run.ts';
import type { RunTools } from './steps.ts';

const PULL_WAIT_MS = 20_000;

/** Of which kinds of requests how many at once. */
type Lane = Readonly<{ kinds: readonly RequestKind[]; concurrency: number }>;

/** Tasks may take hours: chats have places of their own, so that nobody waits for an answer until a task is done. */
function lanesOf({ kinds, once, concurrency, chats }: WorkerOptions): Lane[] {
  if (once) return [{ kinds, concurrency: 1 }];
  return kinds.map((kind) => ({ kinds: [kind], concurrency: kind === 'chat' ? chats : concurrency }));
}

/**
 * Pulls and performs runs, as many at once as the options say, until `drain` aborts; then what runs is finished. With
 * `once` it ends after the first run. An API that is away is waited for. Answers whether the last run succeeded.
 * @throws where asking again cannot help: ApiError for a wrong token or a filter that is refused.
 */
export async function workLoop(tools: RunTools & { drain: AbortSignal }): Promise<boolean> {
  const { api, options, say } = tools;
  const failed = new AbortController();
  const drain = AbortSignal.any([tools.drain, failed.signal]);
  let away = false;
  let taken = 0;
  let succeeded = true;

  function pulling({ kinds }: Lane) {
    let failures = 0;
    return async (limit: number): Promise<(Claim | ChatClaim)[]> => {
      const { workerId, organizationIds, profileKeys } = options;
      const body = { workerId, limit, waitMs: PULL_WAIT_MS, kinds, organizationIds, profileKeys };
      try {
        const claims = await api.pull(body, { signal: drain });
        if (away) say(`connected to ${options.url} again`);
        away = false;
        failures = 0;
        return claims;
      } catch (error) {
        if (drain.aborted) return [];
        if (!mayBeSentAgain(error)) throw error;
        if (!away) say(`no answer from ${options.url}, trying again: ${reasonOf(error)}`);
        away = true;
        await sleep(backoffMs(failures), undefined, { signal: drain }).catch(() => {});
        failures += 1;
        return [];
      }
    };
  }

  async function work(lane: Lane): Promise<void> {
    const pull = pulling(lane);
    const running = new Set<Promise<void>>();
    function begin(claim: Claim | ChatClaim): void {
      const performed = isChatClaim(claim) ? performTurn(claim, tools) : performRun(claim, tools);
      const done = performed.then((result) => {
        succeeded = result;
        running.delete(done);
      });
      running.add(done);
    }
    try {
      while (!drain.aborted && !(options.once && taken > 0)) {
        const free = lane.concurrency - running.size;
        if (free === 0) await Promise.race(running);
        else {
          const claims = await pull(free);
          taken += claims.length;
          for (const claim of claims) begin(claim);
        }
      }
    } catch (error) {
      // What one lane is refused, the others would be too.
      failed.abort();
      throw error;
    } finally {
      await Promise.all(running);
    }
  }

  const results = await Promise.allSettled(lanesOf(options).map(work));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
  return options.once ? taken > 0 && succeeded : true;
}
