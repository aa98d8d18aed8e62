import type { Logger } from 'pino';
import type { Config } from '../../engine/config.ts';
import type { Database } from '../../engine/db/database.ts';
import type { Git } from '../../engine/git/index.ts';
import type { Integrations } from '../../engine/integrations/index.ts';
import type { Storage } from '../../engine/storage/index.ts';
import type { JobName, Payload } from '../catalog.ts';
import type { JobMetrics } from './metrics.ts';

/** All that tasks need from outside: made once a process. */
export type JobServices = Readonly<{
  config: Config;
  /** For statements of any length. */
  db: Database;
  /** For dispatch alone: few connections, short time-outs. */
  dispatchDb: Database;
  storage: Storage;
  integrations: Integrations;
  git: Git;
  log: Logger;
  metrics: JobMetrics;
}>;

/** Each job has a key: by its loss one is known that was replaced while it ran. */
export type AddJob = <N extends JobName>(
  name: N,
  payload: Payload<N>,
  options: Readonly<{ key: string; priority?: number | undefined; runAt?: Date | undefined }>,
) => Promise<unknown>;

export type JobContext = JobServices &
  Readonly<{
    jobId: string;
    /** The first time 1; a process that died in the middle has used one up. */
    attempt: number;
    addJob: AddJob;
    /** Aborted when the process stops: leave off at the next place where nothing is lost. */
    signal: AbortSignal;
  }>;

/**
 * `unfinished`: it left off, because the process stops or so that other jobs have their turn; the job is added again, behind those
 * that wait.
 */
export type Outcome = 'done' | 'unfinished';

/**
 * A task may run twice, also at the same time, and may end anywhere: what it does is safe to do again.
 * One that throws runs again after a backoff, up to 25 times.
 */
export type JobHandler<N extends JobName> = (payload: Payload<N>, context: JobContext) => Promise<Outcome>;
