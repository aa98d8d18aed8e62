import type pg from 'pg';
import { callWith } from '../../engine/db/function_text.ts';
import { percentile } from './measure.ts';
import { seedOrganizations, seedTasks } from './seed.ts';
import { type BenchServer, startBenchJobs } from './server.ts';

const PULL = 50;
const POLL_MS = 5;
const FOUND_WITHIN_MS = 120_000;

export type DueSize = Readonly<{ stale: number; organizations: number; samples: number }>;
export type DueTime = Readonly<{ p50: number; max: number; moved: number; left: number }>;

/** Claims that end tomorrow, as many as are asked for; the capacity is no matter of this measurement. */
async function claim(db: pg.Pool, organizationIds: readonly string[], count: number): Promise<void> {
  for (const table of ['dispatch', 'dispatch_lanes']) {
    await db.query(`update app.${table} set capacity = 1000000 where organization_id = any ($1)`, [organizationIds]);
  }
  for (let claimed = 0; claimed < count; claimed += PULL) {
    await callWith(db, 'run_requests_pull', {
      workerIds: Array.from({ length: Math.min(PULL, count - claimed) }, () => 'bench'),
      organizationIds,
      profileKeys: null,
      kinds: null,
      claimSeconds: 86_400,
    });
  }
}

async function held(db: pg.Pool, organizationId: string): Promise<number> {
  const { rows } = await db.query(
    `select count(*)::integer as held from app.run_requests where organization_id = $1 and state = 'leased'`,
    [organizationId],
  );
  return rows[0].held;
}

/** Ends one lease, and waits until dispatch has handed the request out again. @returns milliseconds */
async function untilFound(db: pg.Pool, organizationId: string): Promise<number> {
  const { rows } = await db.query(
    `update app.run_requests set lease_expires_at = clock_timestamp() where organization_id = $1 and id = (
       select id from app.run_requests where organization_id = $1 and state = 'leased' limit 1) returning id`,
    [organizationId],
  );
  const started = performance.now();
  for (;;) {
    const { rows: leased } = await db.query(
      `select from app.run_requests where organization_id = $1 and id = $2 and state = 'leased'`,
      [organizationId, rows[0].id],
    );
    const passed = performance.now() - started;
    if (leased.length === 0 || passed > FOUND_WITHIN_MS) return passed;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/**
 * How long the lease of an organization has ended before dispatch finds it, while so many have ended of another one, and so many
 * organizations have work that is not due.
 */
export async function measureDue(server: BenchServer, db: pg.Pool, size: DueSize): Promise<DueTime> {
  const { organizationIds } = await seedOrganizations(db, size.organizations, 1);
  // Whoever reads by ids comes to the large one first.
  const [large = '', small = ''] = organizationIds.toSorted();
  for (const id of organizationIds) await seedTasks(db, id, 1, 'pending');
  await seedTasks(db, large, size.stale, 'pending');
  await seedTasks(db, small, size.samples, 'pending');
  await db.query('vacuum analyze');
  await claim(db, organizationIds, size.stale + size.samples + size.organizations);
  await db.query(
    `update app.run_requests set lease_expires_at = clock_timestamp() - interval '1 hour' where organization_id = $1 and state = 'leased'`,
    [large],
  );
  await db.query('vacuum analyze app.run_requests');
  const jobs = await startBenchJobs(server);
  const times: number[] = [];
  const before = await held(db, large);
  const started = performance.now();
  for (let sample = 0; sample < size.samples; sample += 1) times.push(await untilFound(db, small));
  const seconds = (performance.now() - started) / 1_000;
  const left = await held(db, large);
  await jobs.stop();
  return { p50: percentile(times, 0.5), max: Math.max(...times), moved: (before - left) / seconds, left };
}
