/** npm passes the signal of one Ctrl-C on, so that it arrives twice; a second Ctrl-C comes later than this. */
const SAME_SIGNAL_MS = 500;

/** Counts how often a person pressed Ctrl-C, called at each signal; 0: it is the one before, passed on. */
export function countPresses(now = Date.now): () => number {
  let last = Number.NEGATIVE_INFINITY;
  let count = 0;
  return () => {
    if (now() - last <= SAME_SIGNAL_MS) return 0;
    last = now();
    count += 1;
    return count;
  };
}
