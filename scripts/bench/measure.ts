/** Runs `work` in `workers` loops until `seconds` are over. @returns completed units a second */
export async function rate(
  workers: number,
  seconds: number,
  work: (worker: number) => Promise<number>,
): Promise<number> {
  const started = performance.now();
  const until = started + seconds * 1000;
  let units = 0;
  await Promise.all(
    Array.from({ length: workers }, async (_, worker) => {
      while (performance.now() < until) {
        const done = await work(worker);
        // Not `units += await …`: that would add to what it was before the wait.
        units += done;
      }
    }),
  );
  return (units * 1000) / (performance.now() - started);
}

/** The value below which `share` of the samples lie. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function median(samples: readonly number[]): number {
  return percentile(samples, 0.5);
}
