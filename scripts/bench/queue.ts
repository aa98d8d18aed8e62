import { Logger, run, runMigrations } from 'graphile-worker';
import pg from 'pg';

/** No-op jobs a second of the job queue in the same database. */
export async function measureQueue(url: string, jobs: number): Promise<number> {
  await runMigrations({ connectionString: url });
  const pool = new pg.Pool({ connectionString: url, max: 26 });
  pool.on('error', () => {});
  await pool.query(
    `select graphile_worker.add_job('bench_noop', json_build_object('n', n)) from generate_series(1, $1::integer) n`,
    [jobs],
  );
  let done = 0;
  const { promise: finished, resolve } = Promise.withResolvers<void>();
  const started = performance.now();
  const runner = await run({
    pgPool: pool,
    concurrency: 24,
    noHandleSignals: true,
    // A line a job would be most of what is measured.
    logger: new Logger(() => () => {}),
    parsedCronItems: [],
    taskList: {
      bench_noop: async () => {
        done += 1;
        if (done === jobs) resolve();
      },
    },
    preset: {
      worker: {
        localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
  });
  await finished;
  const seconds = (performance.now() - started) / 1000;
  await runner.stop();
  await pool.end();
  return jobs / seconds;
}
