import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';
import { uuid } from '../fields/ids.ts';
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
    version: z.int().describe('Rises with every change of the schedule, not when it fires, is paused or resumed.'),
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
    version: z.int(),
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
        version: row.version,
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
  version: 1,
  nextRunAt: times.nextMonday,
  lastRunAt: '2026-11-23T08:00:00.000Z',
  lastTaskId: ids.task,
  createdAt: '2026-11-10T16:30:05.945Z',
  updatedAt: '2026-11-23T08:00:00.310Z',
} satisfies Schedule;
