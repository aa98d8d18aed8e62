import type { Logger } from 'pino';
import { Counter, type Registry } from 'prom-client';
import type { ProviderReason } from './errors.ts';

/** How a call ended. `throttled`: we did not send it, since a budget was used up. `aborted`: nobody waited for it any more. */
export type CallOutcome = 'ok' | 'throttled' | 'aborted' | ProviderReason;

export type ObservedCall = Readonly<{
  provider: string;
  method: string;
  /** Host and, at origins that are the provider's own, the path. No query string, no body. */
  target: string;
  outcome: CallOutcome;
  status: number | undefined;
  attempt: number;
  durationMs: number;
}>;

export type ObserveCall = (call: ObservedCall) => void;

/** Counts calls in `/metrics`, and logs them: failed ones as warnings, others for debugging. */
export function callObserver(registry: Registry, log: Logger): ObserveCall {
  const calls = new Counter({
    name: 'provider_requests_total',
    help: 'Requests to providers, by provider and outcome',
    labelNames: ['provider', 'outcome'] as const,
    registers: [registry],
  });
  return (call) => {
    calls.inc({ provider: call.provider, outcome: call.outcome });
    const message = 'provider request';
    if (call.outcome === 'ok' || call.outcome === 'not_found') log.debug(call, message);
    else log.warn(call, message);
  };
}
