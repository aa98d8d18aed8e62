import { z } from 'zod';
import { type ReadRefusal, resetAt, type Site } from '../outgoing/index.ts';

export const API = 'https://api.github.com';
export const WEB = 'https://github.com';
/** What we read follows this version. */
const API_VERSION = '2022-11-28';

const refusal = z.object({ message: z.string().optional(), error: z.string().optional() });

/** GitHub tells limits as 403 or 429: a primary one by its headers, a secondary one by a sentence. */
export const readRefusal: ReadRefusal = ({ status, headers, json, now }) => {
  const { message = '', error } = refusal.safeParse(json).data ?? {};
  if (status === 403 || status === 429) {
    const reset = headers['x-ratelimit-remaining'] === '0' ? resetAt(headers['x-ratelimit-reset'], now) : undefined;
    const isSecondary = headers['retry-after'] !== undefined || /secondary rate limit|abuse detection/i.test(message);
    if (reset || isSecondary) return { reason: 'rate_limited', retryNotBefore: reset };
  }
  // A repository that was renamed or transferred: another one than the settings name.
  if (status >= 300 && status < 400) return { reason: 'not_found' };
  return { code: error };
};

export const site: Site = { provider: 'github', origins: [API], readRefusal, follow: false };

export function apiHeaders(authorization: string): Readonly<Record<string, string>> {
  return { authorization, accept: 'application/vnd.github+json', 'x-github-api-version': API_VERSION };
}
