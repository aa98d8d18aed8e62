import type pg from 'pg';
import type { Logger } from 'pino';
import { keepConnected, send } from '../../engine/db/reconnect.ts';
import { createThrottle, logThrottled } from '../../engine/log.ts';

const LOOK_MS = 1_000;
/** A pool's lock has to be free in every look for so long; a pool that was just made is still taking its own. */
const DEAD_AFTER_MS = 2_000;
/**
 * After a restart of Postgres all locks are gone, and each process takes its own again at its next try to connect: no
 * judgement before the last of them had one (`reconnect.ts` waits 5 s at most).
 */
const SETTLE_MS = 6_000;
/** Any number that no other advisory lock of this database uses. */
const LOCK_SEED = 42;

export type LivenessLock = Readonly<{ close(): Promise<void> }>;

type Watch = Readonly<{
  /** Judges the owners of locked jobs once. */
  look(): Promise<void>;
}>;

/** Looks over one connection: a new one begins anew, so that "free all the time" is what was really seen. */
function createWatch(client: pg.Client, poolId: string, settledAt: number, log: Logger): Watch {
  const freeSince = new Map<string, number>();

  async function free(): Promise<string[]> {
    // Tried and given back at once; a live owner that takes its lock in this moment waits a millisecond.
    const { rows } = await send<{ owner: string }>(
      client,
      `select owner from (select distinct locked_by as owner from graphile_worker.jobs where locked_by is not null) l
       where owner <> $1 and pg_try_advisory_xact_lock(hashtextextended(owner, ${LOCK_SEED}))`,
      [poolId],
    );
    return rows.map((row) => row.owner);
  }

  async function unlock(owners: readonly string[]): Promise<void> {
    // Under the owners' locks: one that has come back meanwhile keeps its jobs. Every job has a key; one that was
    // replaced while it ran has lost it, together with its attempts, and ends here: its successor does the work. In one
    // statement, for what is unlocked is found no more.
    const { rows } = await send<{ owners: string[] }>(
      client,
      `with dead as materialized (
         select owner from unnest($1::text[]) owner where pg_try_advisory_xact_lock(hashtextextended(owner, ${LOCK_SEED}))),
       replaced as materialized (
         select j.id from graphile_worker.jobs j join dead on dead.owner = j.locked_by
         where j.key is null and j.attempts >= j.max_attempts)
       select array_agg(owner) as owners, graphile_worker.force_unlock_workers(array_agg(owner)),
         (select count(*) from replaced cross join lateral graphile_worker.complete_jobs(array[replaced.id])) as completed
       from dead having count(*) > 0`,
      [owners],
    );
    if (!rows[0]) return;
    for (const owner of rows[0].owners) freeSince.delete(owner);
    log.warn({ pools: rows[0].owners }, 'the jobs of a process that died run again');
    await send(client, `select pg_notify('jobs:insert', '{"count": 8}')`);
  }

  return {
    async look() {
      if (Date.now() < settledAt) return;
      const owners = await free();
      for (const owner of freeSince.keys()) if (!owners.includes(owner)) freeSince.delete(owner);
      for (const owner of owners) if (!freeSince.has(owner)) freeSince.set(owner, Date.now());
      const dead = owners.filter((owner) => Date.now() - (freeSince.get(owner) ?? Date.now()) >= DEAD_AFTER_MS);
      if (dead.length > 0) await unlock(dead);
    },
  };
}

/**
 * The queue itself lets the jobs of a crashed process lie for four hours. So each pool of workers holds an advisory lock
 * on a connection of its own, which goes with the process, and looks each second whose jobs are locked by a pool without
 * one: they are unlocked after two to three seconds. A live pool that loses its connection takes the lock again as soon
 * as it can; should that take too long, its jobs run twice, as jobs may.
 * @param options.url a direct connection: through a transaction pooler the lock would belong to nobody
 */
export function openLivenessLock(options: { url: string; poolId: string; log: Logger }): LivenessLock {
  const { poolId, log } = options;
  const throttle = createThrottle();
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;
  let connects = 0;

  const connection = keepConnected({
    url: options.url,
    async prepare(client) {
      connects += 1;
      await send(client, `select pg_advisory_lock(hashtextextended($1, ${LOCK_SEED}))`, [poolId]);
      const { rows } = await send<{ uptimeMs: number }>(
        client,
        `select extract(epoch from clock_timestamp() - pg_postmaster_start_time())::float8 * 1000 as "uptimeMs"`,
      );
      // The first connection of a process proves no outage; a young Postgres does.
      const quietMs = connects > 1 ? SETTLE_MS : Math.max(0, SETTLE_MS - (rows[0]?.uptimeMs ?? 0));
      const watch = createWatch(client, poolId, Date.now() + quietMs, log);
      clearInterval(timer);
      timer = setInterval(() => {
        looking ??= watch
          .look()
          .catch((error: unknown) => logThrottled(log, throttle, 'crashed processes cannot be looked for', error))
          .finally(() => {
            looking = undefined;
          });
      }, LOOK_MS);
    },
    onLost(error) {
      clearInterval(timer);
      logThrottled(log, throttle, 'the connection that tells that this process lives is lost', error);
    },
  });

  return {
    async close() {
      clearInterval(timer);
      await looking;
      await connection.close();
      clearInterval(timer);
    },
  };
}
