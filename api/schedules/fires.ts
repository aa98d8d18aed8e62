import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';
import { organizationNotFound, scoped } from '../../engine/db/scope.ts';
import { nextFire } from '../../engine/schedules/index.ts';
import { isUuid } from '../fields/ids.ts';
import { requireTimeZone } from '../fields/time_zone.ts';
import { timestamp } from '../fields/timestamp.ts';

const clockRow = z.object({ now: timestamp, timezone: z.string() });
const pacedRow = z.object({ now: timestamp, cron: z.string(), timezone: z.string(), version: z.int() });

/** The next fire, which has to be one: expressions that never fire are refused at their creation. */
function fireAfter(cron: string, timezone: string, now: string): string {
  const next = nextFire(cron, timezone, new Date(now));
  if (!next) throw new Error(`the schedule ${cron} never fires`);
  return next.toISOString();
}

/**
 * The zone of a new schedule (default: the organization's), and its first fire after the present of the database.
 * @throws Problem 404 `organization_not_found`, 400 for a zone that the database reads otherwise
 */
export async function firstFire(
  db: Queries,
  organizationId: string,
  schedule: Readonly<{ cron: string; timezone?: string | undefined }>,
): Promise<{ timezone: string; nextRunAt: string }> {
  const clock = await db.maybeOne(
    scoped(
      organizationId,
      clockRow,
      sql.fragment`
        select to_jsonb(clock_timestamp()) #>> '{}' as now, o.config ->> 'timezone' as timezone
        from app.organizations o
        where o.id = scope.organization_id`,
    ),
  );
  if (!clock) throw organizationNotFound();
  await requireTimeZone(db, 'timezone', schedule.timezone);
  const timezone = schedule.timezone ?? clock.timezone;
  return { timezone, nextRunAt: fireAfter(schedule.cron, timezone, clock.now) };
}

/** The expression and zone of a schedule, their version, and the present of the database; null where there is none. */
function pace(db: Queries, organizationId: string, ref: string) {
  const byRef = isUuid(ref) ? sql.fragment`s.id = ${ref}::uuid` : sql.fragment`s.key = ${ref}`;
  return db.maybeOne(
    scoped(
      organizationId,
      pacedRow,
      sql.fragment`
        select to_jsonb(clock_timestamp()) #>> '{}' as now, s.cron, s.timezone, s.version
        from app.schedules s
        where s.organization_id = scope.organization_id and ${byRef}`,
    ),
  );
}

/**
 * The next fire of a schedule that is resumed now, and the version it follows from; both undefined if there is no such
 * schedule. The transition compares the version and decides everything else.
 */
export async function resumedFire(
  db: Queries,
  organizationId: string,
  ref: string,
): Promise<{ nextRunAt: string | undefined; version: number | undefined }> {
  const found = await pace(db, organizationId, ref);
  if (!found) return { nextRunAt: undefined, version: undefined };
  return { nextRunAt: fireAfter(found.cron, found.timezone, found.now), version: found.version };
}

/**
 * The next fire of a patched schedule; undefined if the patch changes neither expression nor zone, or if there is no such
 * schedule, which the transition refuses. The version has to be the expected one: the fire would follow from another otherwise.
 * @throws Problem 409 `state_conflict` when the schedule is at another version, 400 for a zone that the database reads otherwise
 */
export async function changedFire(
  db: Queries,
  organizationId: string,
  ref: string,
  patch: Readonly<{ expectedVersion: number; cron?: string | undefined; timezone?: string | undefined }>,
): Promise<string | undefined> {
  const { expectedVersion, cron, timezone } = patch;
  if (cron === undefined && timezone === undefined) return undefined;
  await requireTimeZone(db, 'timezone', timezone);
  const found = await pace(db, organizationId, ref);
  if (!found) return undefined;
  if (found.version !== expectedVersion) {
    const { version } = found;
    const issue = { path: 'expectedVersion', message: `the schedule is at version ${version}`, code: 'stale' };
    throw new Problem(409, 'state_conflict', `The schedule is at version ${version}`, [issue]);
  }
  return fireAfter(cron ?? found.cron, timezone ?? found.timezone, found.now);
}
