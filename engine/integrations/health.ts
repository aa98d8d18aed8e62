import { call, ignored } from '../db/call.ts';
import { OAuthError } from '../providers/oauth/index.ts';
import { ProviderError } from '../providers/outgoing/index.ts';
import type { Integrations } from './integrations.ts';
import type { ConnectionTarget } from './stored.ts';

const DAY_S = 24 * 3_600;
const FAILED_S = 900;

/** Spread out, so that what was connected together is not looked at together. */
const spread = (seconds: number) => Math.round(seconds * (0.8 + Math.random() * 0.4));

/** The state in which a provider was just found. */
export type Health = Readonly<{
  state: 'works' | 'provider_unavailable' | 'provider_failed' | 'not_asked';
  /** The provider, or a budget of ours, is not asked before. */
  retryNotBefore?: Date | undefined;
}>;

/**
 * What a failure says of the health of its connection. `check`: the request was about the connection itself, so that every refusal
 * counts; that of another call may be the call's own fault, so that only an unavailable provider counts.
 * What is ours (a budget, a blocked domain, tokens that another process exchanges) does not count.
 */
export function healthOf(error: unknown, asked: 'check' | 'call'): Health {
  if (error instanceof OAuthError && asked === 'check') return { state: 'provider_failed' };
  if (!(error instanceof ProviderError)) return { state: 'not_asked' };
  const { reason, retryNotBefore, isOurs } = error;
  if (isOurs) return { state: 'not_asked', retryNotBefore };
  if (reason === 'unavailable' || reason === 'rate_limited') return { state: 'provider_unavailable', retryNotBefore };
  return { state: asked === 'check' ? 'provider_failed' : 'not_asked' };
}

function healthFacts(state: Health['state']) {
  switch (state) {
    case 'works':
      return {};
    case 'not_asked':
      return { postponed: true };
    default:
      return { code: state };
  }
}

export type MarkOptions = Readonly<{
  /** Gives the lease of a refresh back. */
  leaseId?: string;
  /** Until the next look. Default: a day of one that works, else soon, and not before the provider wants to be asked. */
  checkSeconds?: number;
}>;

/** Records how the provider was just found; one that was not asked stays what it was. */
export async function markHealth(
  { db }: Pick<Integrations, 'db'>,
  { organizationId, integrationId, revision }: ConnectionTarget,
  { state, retryNotBefore }: Health,
  { leaseId, checkSeconds }: MarkOptions = {},
): Promise<void> {
  const waitS = retryNotBefore === undefined ? 0 : (retryNotBefore.getTime() - Date.now()) / 1_000;
  const next = state === 'works' ? spread(DAY_S) : Math.ceil(Math.max(waitS, spread(FAILED_S)));
  const args = {
    organizationId,
    integrationId,
    connectionRevision: revision,
    health: { ...healthFacts(state), ...(leaseId === undefined ? {} : { leaseId }) },
    checkSeconds: checkSeconds ?? next,
  };
  await call(db.of(organizationId), 'integration_health_mark', args, ignored);
}
