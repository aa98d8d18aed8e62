import { randomUUID } from 'node:crypto';
import { ApiError, type ChatClaim, type Claim, isRetryable } from './api.ts';
import type { SendUnderLease, WorkerContext } from './context.ts';
import { type HeldLease, holdLease } from './lease.ts';
import { secretsOf, secretValues } from './redact.ts';
import { errorText, retry } from './retry.ts';

/** Retries calls while the lease holds; they end when the run has to stop. */
export function sendUnderLease(held: HeldLease, name: string, worker: WorkerContext): SendUnderLease {
  return (call) =>
    retry(() => call(held.signal), {
      isRetryable,
      deadline: held.deadline,
      signal: held.signal,
      onRetry: (error, failures) => {
        if (failures === 0) worker.print(`${name}  retrying: ${errorText(error)}`);
      },
    });
}

/**
 * Starts a claim, does `work` under its lease and releases the lease. Never throws: whatever goes wrong is printed.
 * False: the work failed, or never started.
 */
export async function workUnderLease(
  claim: Claim | ChatClaim,
  name: string,
  worker: WorkerContext,
  work: (held: HeldLease, executionToken: string) => Promise<boolean>,
): Promise<boolean> {
  const { api, options, print } = worker;
  const { organizationId, leaseToken } = claim;
  const runId = randomUUID();
  const claimedUntil = performance.now() + claim.claimMs;
  let held: HeldLease | undefined;
  const onStop = () => held?.stop();
  try {
    // A repeat with the same run id is the same start: a lost response costs nothing.
    const started = await retry(() => api.start(claim, runId, options.workerId, { signal: worker.stop }), {
      isRetryable,
      deadline: () => claimedUntil,
      signal: worker.stop,
    });
    const { leaseMs, heartbeatIntervalMs, executionToken } = started;
    const own = [options.token, options.llm?.key, executionToken, leaseToken.split('.')[1]];
    const secrets = secretsOf([...own, ...secretValues(options.environment)]);
    held = holdLease({ api, lease: { organizationId, leaseToken, runId, secrets }, leaseMs, heartbeatIntervalMs });
    worker.stop.addEventListener('abort', onStop, { once: true });
    if (worker.stop.aborted) onStop();
    return await work(held, executionToken);
  } catch (error) {
    const reason = error instanceof ApiError && error.status === 409 ? `${error.reason || error.code}, ` : '';
    const message = error instanceof Error ? error.message : String(error);
    print(`${name}  ${held ? 'given up' : 'not started'}: ${reason}${message}`);
    return false;
  } finally {
    worker.stop.removeEventListener('abort', onStop);
    await held?.release();
  }
}
