import { setTimeout as sleep } from 'node:timers/promises';
import { type Claim, mayBeSentAgain } from './api.ts';
import { backoffMs, reasonOf } from './retry.ts';
import { performRun } from './run.ts';
import type { RunTools } from './steps.ts';

const PULL_WAIT_MS = 20_000;

/**
 * Pulls and performs runs, up to `concurrency` at once, until `drain` aborts; then what runs is finished. With `once` it
 * ends after the first run. An API that is away is waited for. Answers whether the last run succeeded.
 * @throws where asking again cannot help: ApiError for a wrong token or a filter that is refused.
 */
export async function workLoop(tools: RunTools & { drain: AbortSignal }): Promise<boolean> {
  const { api, options, say, drain } = tools;
  const running = new Set<Promise<void>>();
  let succeeded = true;
  let failures = 0;

  async function pull(limit: number): Promise<Claim[]> {
    const { workerId, organizationIds, profileKeys } = options;
    const body = { workerId, limit, waitMs: PULL_WAIT_MS, kinds: ['task'], organizationIds, profileKeys };
    try {
      const claims = await api.pull(body, { signal: drain });
      if (failures > 0) say(`connected to ${options.url} again`);
      failures = 0;
      return claims;
    } catch (error) {
      if (drain.aborted) return [];
      if (!mayBeSentAgain(error)) throw error;
      if (failures === 0) say(`no answer from ${options.url}, trying again: ${reasonOf(error)}`);
      await sleep(backoffMs(failures), undefined, { signal: drain }).catch(() => {});
      failures += 1;
      return [];
    }
  }

  function begin(claim: Claim): void {
    const done = performRun(claim, tools).then((result) => {
      succeeded = result;
      running.delete(done);
    });
    running.add(done);
  }

  let taken = 0;
  try {
    while (!drain.aborted && !(options.once && taken > 0)) {
      const free = options.concurrency - running.size;
      if (free === 0) await Promise.race(running);
      else {
        const claims = await pull(free);
        taken += claims.length;
        for (const claim of claims) begin(claim);
      }
    }
  } finally {
    await Promise.all(running);
  }
  return options.once ? taken > 0 && succeeded : true;
}
