const KEPT_MS = 5_000;
const TIMEOUT_MS = 2_000;

/**
 * Caches what metrics read for five seconds, whatever the number of scrapers. A stalled database delays no scrape: after two
 * seconds, and when the read fails, the value is `otherwise`. There is one read at a time.
 */
export function cachedRead<T>(
  read: () => Promise<T>,
  otherwise: T,
  { keptMs = KEPT_MS, timeoutMs = TIMEOUT_MS }: Readonly<{ keptMs?: number; timeoutMs?: number }> = {},
): () => Promise<T> {
  let latest: Promise<T> | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  let isReading = false;

  function begin(): Promise<T> {
    isReading = true;
    const reading = read()
      .catch(() => otherwise)
      .finally(() => {
        isReading = false;
        readAt = performance.now();
      });
    latest = reading;
    return reading;
  }

  return async () => {
    const reading = latest !== undefined && (isReading || performance.now() - readAt < keptMs) ? latest : begin();
    const late = Promise.withResolvers<T>();
    const timer = setTimeout(() => late.resolve(otherwise), timeoutMs);
    try {
      return await Promise.race([reading, late.promise]);
    } finally {
      clearTimeout(timer);
    }
  };
}
