const KEPT_MS = 5_000;
const TIMEOUT_MS = 2_000;

/**
 * Numbers for metrics, read at most every five seconds by whoever asks, however many ask. A stalled database holds up nobody: after
 * two seconds, and where reading fails, it is `otherwise`, and one that is still being read is not read again.
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
