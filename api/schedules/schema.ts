import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { organizationNotFound, scoped } from '../../engine/db/scope.ts';
import { mapping } from '../../engine/mapping.ts';
import { nextFire } from '../../engine/schedules/index.ts';
import { isUuid } from '../fields/ids.ts';
import { requireTimeZone } from '../fields/time_zone.ts';
import { dateTime, nullableTimestamp, timestamp } from '../fields/timestamp.ts';
import { keyColumns } from '../http/pagination.ts';

export const SCHEDULE_STATUSES = ['active', 'paused'] as const;
export const SCHEDULE_OVERLAPS = ['skip', 'allow'] as const;

/** Contract 2.15, decisions 8. */
export const scheduleSchema = z
  .object({
    id: z.string(),
    organizationId: z.string(),
    key: z.string(),
    title: z.string(),
    cron: z.string(),
    timezone: z.string(),
    status: z.enum(SCHEDULE_STATUSES),
    taskTemplate: z.looseObject({ title: z.string() }).describe('What each task is made of.'),
    overlap: z.enum(SCHEDULE_OVERLAPS),
    nextRunAt: dateTime.nullable().describe('Null while it is paused.'),
    lastRunAt: dateTime.nullable().describe('The fire that made the last task.'),
    lastTaskId: z.string().nullable(),
    createdAt: dateTime,
    updatedAt: dateTime,
  })
  .meta({ id: 'Schedule' });
export type Schedule = z.output<typeof scheduleSchema>;

/** A row of `app.schedules`, as `to_jsonb` writes it. */
const scheduleRow = z
  .object({
    organization_id: z.string(),
    id: z.string(),
    key: z.string(),
    title: z.string(),
    cron: z.string(),
    timezone: z.string(),
    status: z.enum(SCHEDULE_STATUSES),
    task_template: z.looseObject({ title: z.string() }),
    overlap: z.enum(SCHEDULE_OVERLAPS),
    next_run_at: nullableTimestamp,
    last_run_at: nullableTimestamp,
    last_task_id: z.string().nullable(),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .pipe(
    mapping(
      (row): Schedule => ({
        id: row.id,
        organizationId: row.organization_id,
        key: row.key,
        title: row.title,
        cron: row.cron,
        timezone: row.timezone,
        status: row.status,
        taskTemplate: row.task_template,
        overlap: row.overlap,
        nextRunAt: row.next_run_at,
        lastRunAt: row.last_run_at,
        lastTaskId: row.last_task_id,
        createdAt: row.created_at,
        updatedAt: row.updated_at,
      }),
    ),
  );

/** What a transition of a schedule returns. */
export const scheduleAnswer = z.object({ schedule: scheduleRow });
export const schedulePageRow = z.object({ schedule: scheduleRow, ...keyColumns });

const clockRow = z.object({ now: timestamp, timezone: z.string() });
const pacedRow = z.object({ now: timestamp, cron: z.string(), timezone: z.string() });

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

/**
 * When a schedule that goes on now fires next; undefined where there is none. Its expression and zone never change, so
 * they may be read before the transition, which judges everything else.
 */
export async function resumedFire(db: Queries, organizationId: string, ref: string): Promise<string | undefined> {
  const byRef = isUuid(ref) ? sql.fragment`s.id = ${ref}::uuid` : sql.fragment`s.key = ${ref}`;
  const found = await db.maybeOne(
    scoped(
      organizationId,
      pacedRow,
      sql.fragment`
        select to_jsonb(clock_timestamp()) #>> '{}' as now, s.cron, s.timezone
        from app.schedules s
        where s.organization_id = scope.organization_id and ${byRef}`,
    ),
  );
  return found ? fireAfter(found.cron, found.timezone, found.now) : undefined;
}

export const scheduleExample = {
  id: '0199f2f6-2d10-7c11-8a4e-6b1f0c9d2e35',
  organizationId: '0199f2f4-7d1c-7a52-9b1e-2f4f6a1c0d3e',
  key: 'weekly-report',
  title: 'Report of the week',
  cron: '0 9 * * MON',
  timezone: 'Europe/Berlin',
  status: 'active',
  taskTemplate: { title: 'Report on the sales of the week', ownerProfileKey: 'growth' },
  overlap: 'skip',
  nextRunAt: '2026-02-02T08:00:00.000Z',
  lastRunAt: '2026-01-26T08:00:00.000Z',
  lastTaskId: '0199f2f7-5b2e-7f43-9c1d-0a8e4d6b7c21',
  createdAt: '2026-01-20T14:12:08.114Z',
  updatedAt: '2026-01-26T08:00:00.310Z',
} satisfies Schedule;
