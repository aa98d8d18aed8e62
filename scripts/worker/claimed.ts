import { randomUUID } from 'node:crypto';
import { ApiError, type ChatClaim, type Claim, mayBeSentAgain } from './api.ts';
import { type HeldLease, holdLease } from './lease.ts';
import { reasonOf, retrying } from './retry.ts';
import type { RunTools } from './steps.ts';

export type Send = <T>(call: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/** Sends calls again while the lease holds; they end when the run has to stop. */
export function sender(held: HeldLease, name: string, tools: RunTools): Send {
  return (call) =>
    retrying(() => call(held.signal), {
      again: mayBeSentAgain,
      deadline: held.deadline,
      signal: held.signal,
      onRetry: (error, failures) => {
        if (failures === 0) tools.say(`${name}  trying again: ${reasonOf(error)}`);
      },
    });
}

/**
 * Starts a claim and does `work` under its lease, which is let go afterwards. Throws nothing: whatever goes wrong is said.
 * False also where the work says so.
 */
export async function workUnderLease(
  claim: Claim | ChatClaim,
  name: string,
  tools: RunTools,
  work: (held: HeldLease, executionToken: string) => Promise<boolean>,
): Promise<boolean> {
  const { api, options, say } = tools;
  const { organizationId, leaseToken } = claim;
  const runId = randomUUID();
  const claimedUntil = performance.now() + claim.claimMs;
  let held: HeldLease | undefined;
  const onStop = () => held?.stop();
  try {
    // Sent again with the same run id, it is the same start: a lost answer costs nothing.
    const started = await retrying(() => api.start(claim, runId, options.workerId, { signal: tools.stop }), {
      again: mayBeSentAgain,
      deadline: () => claimedUntil,
      signal: tools.stop,
    });
    const { leaseMs, heartbeatIntervalMs, executionToken } = started;
    held = holdLease({ api, lease: { organizationId, leaseToken, runId }, leaseMs, heartbeatIntervalMs });
    tools.stop.addEventListener('abort', onStop, { once: true });
    if (tools.stop.aborted) onStop();
    return await work(held, executionToken);
  } catch (error) {
    const reason = error instanceof ApiError && error.status === 409 ? `${error.reason || error.code}, ` : '';
    const message = error instanceof Error ? error.message : String(error);
    say(`${name}  ${held ? 'given up' : 'not started'}: ${reason}${message}`);
    return false;
  } finally {
    tools.stop.removeEventListener('abort', onStop);
    await held?.release();
  }
}
