import { z } from 'zod';
import { ProviderError, type ProviderRequest, type ReadRefusal, resetAt, type Site } from '../outgoing/index.ts';
import type { ProviderContext } from '../provider.ts';
import { oauth1Header, type UserToken } from './oauth1.ts';

export const KEY = 'x-ads';
export const API = 'https://api.x.com';
export const ADS = 'https://ads-api.x.com';

const refusal = z.object({ errors: z.array(z.object({ code: z.unknown().optional() })).min(1) });

/** The limit of the ads account counts before that of the app; 503 has `retry-after`, which all providers share. */
const readRefusal: ReadRefusal = ({ status, headers, json, now }) => {
  const code = refusal.safeParse(json).data?.errors[0]?.code;
  const isLimit = status === 429 || (status === 403 && headers['x-account-rate-limit-remaining'] === '0');
  return {
    reason: isLimit ? 'rate_limited' : undefined,
    code: typeof code === 'string' ? code : undefined,
    retryNotBefore: isLimit
      ? (resetAt(headers['x-account-rate-limit-reset'], now) ?? resetAt(headers['x-rate-limit-reset'], now))
      : undefined,
  };
};

export const site: Site = { provider: KEY, origins: [API, ADS], readRefusal };

type Signed = Readonly<{
  method: 'GET' | 'POST' | 'PUT';
  url: URL;
  user?: UserToken;
  /** `oauth_callback`, `oauth_verifier` */
  extra?: Readonly<Record<string, string>>;
}>;

/** A request with its signature, which is over the provider's own address wherever it is sent. @throws ProviderError */
export function signed(context: ProviderContext, { method, url, user, extra = {} }: Signed) {
  const client = context.deploymentClient;
  if (client === undefined) {
    throw new ProviderError(KEY, 'refused', 'X_ADS_CONSUMER_KEY is not set, so that nothing of X can be asked.');
  }
  const consumer = { key: client.id, secret: client.secret };
  return {
    method,
    effect: method === 'GET' ? 'read' : 'write',
    url,
    headers: { authorization: oauth1Header({ method, url }, consumer, user, { extra }), accept: '*/*' },
    signal: context.signal,
  } satisfies Omit<ProviderRequest, 'buckets'>;
}
