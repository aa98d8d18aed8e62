/** A provider that asks for more than a day has made a mistake, and we would wait for it. */
const LONGEST_MS = 24 * 60 * 60_000;

const bounded = (ms: number, now: number) => new Date(now + Math.min(Math.max(ms, 0), LONGEST_MS));

/** `Retry-After`: seconds, or a date (RFC 9110, 10.2.3). Undefined where it is neither. */
export function retryAfter(header: string | undefined, now: number): Date | undefined {
  const text = (header ?? '').trim();
  if (/^\d{1,9}$/.test(text)) return bounded(Number(text) * 1_000, now);
  // Date.parse reads far more than dates: 2 and -5, for instance.
  if (!/^[A-Z][a-z]{2,8}, ?\d{2}[ -]/.test(text)) return undefined;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : bounded(at - now, now);
}

/** A header that names the second, since 1970, at which a limit is lifted. */
export function resetAt(header: string | undefined, now: number): Date | undefined {
  const text = (header ?? '').trim();
  return /^\d{9,11}$/.test(text) ? bounded(Number(text) * 1_000 - now, now) : undefined;
}
