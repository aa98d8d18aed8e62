import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { organizationNotFound, scoped } from '../../engine/db/scope.ts';
import { mapping } from '../../engine/mapping.ts';
import { nextFire } from '../../engine/schedules/index.ts';
import { isUuid, uuid } from '../fields/ids.ts';
import { requireTimeZone } from '../fields/time_zone.ts';
import { dateTime, nullableTimestamp, timestamp } from '../fields/timestamp.ts';
import { ids, times } from '../http/openapi/example_values.ts';
import { keyColumns } from '../http/pagination.ts';

export const SCHEDULE_STATUSES = ['active', 'paused'] as const;
export const SCHEDULE_OVERLAPS = ['skip', 'allow'] as const;

export const scheduleSchema = z
  .object({
    id: uuid,
    organizationId: uuid,
    key: z.string().describe('Stable and unique in the organization.'),
    title: z.string(),
    cron: z.string().describe('Five fields: minute, hour, day of month, month, day of week.'),
    timezone: z.string().describe('An IANA name.'),
    status: z.enum(SCHEDULE_STATUSES),
    taskTemplate: z.looseObject({ title: z.string() }).describe('What each task is created from.'),
    overlap: z
      .enum(SCHEDULE_OVERLAPS)
      .describe('`skip`: no task is created while a task of this schedule is open. `allow`: always.'),
    nextRunAt: dateTime.nullable().describe('Null while the schedule is paused.'),
    lastRunAt: dateTime.nullable().describe('The scheduled time of the last task.'),
    lastTaskId: uuid.nullable(),
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
export const scheduleResult = z.object({ schedule: scheduleRow });
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
  id: ids.schedule,
  organizationId: ids.organization,
  key: 'weekly-sales-report',
  title: 'Weekly sales report',
  cron: '0 9 * * MON',
  timezone: 'Europe/Berlin',
  status: 'active',
  taskTemplate: { title: 'Write the weekly sales report', ownerProfileKey: 'growth' },
  overlap: 'skip',
  nextRunAt: times.nextMonday,
  lastRunAt: '2026-11-23T08:00:00.000Z',
  lastTaskId: ids.task,
  createdAt: '2026-11-10T16:30:05.945Z',
  updatedAt: '2026-11-23T08:00:00.310Z',
} satisfies Schedule;
