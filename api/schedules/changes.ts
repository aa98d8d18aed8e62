import { z } from 'zod';
import { parseExpression } from '../../engine/schedules/index.ts';
import { isUuid } from '../fields/ids.ts';
import { removable } from '../fields/merge_patch.ts';
import { timeZone } from '../fields/time_zone.ts';
import { MAX_VERSION, newTaskSchema } from '../tasks/changes.ts';
import { taskSpecPatchSchema } from '../tasks/spec.ts';
import { SCHEDULE_OVERLAPS } from './schema.ts';

const KEY = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** `{scheduleRef}`: a schedule's UUID, or its key. */
export const scheduleRef = z
  .string()
  .max(63)
  .refine((text) => KEY.test(text) || isUuid(text), 'must be a UUID or a key such as weekly-sales-report')
  .describe('A schedule: its UUID, or its key.')
  .meta({ examples: ['weekly-sales-report'] });

const cron = z
  .string()
  .max(200)
  .superRefine((text, context) => {
    try {
      if (parseExpression(text).next(0) === undefined) throw new Error('names a day that there is not');
    } catch (error) {
      context.addIssue({ code: 'custom', message: (error as Error).message });
    }
  })
  .describe(
    'Five fields: minute, hour, day of month, month, day of week; with `*`, numbers, names, ranges, lists and steps. At daylight saving changes, a schedule with a fixed hour fires at the next valid minute if its local time is skipped, and once if its local time comes twice. With `*` or steps in the hour, real time counts.',
  )
  .meta({ id: 'CronExpression', examples: ['0 9 * * MON'] });

// What belongs to one task alone is left to each fire.
const { dedupeKey: _key, scheduledAt: _start, dueAt: _due, ...everyTask } = newTaskSchema.shape;

const namesOneOwner = (task: Readonly<{ ownerAgentProfileId?: unknown; ownerProfileKey?: unknown }>) =>
  !(task.ownerAgentProfileId && task.ownerProfileKey);
const ONE_OWNER = { path: ['ownerProfileKey'], message: 'give ownerAgentProfileId or ownerProfileKey, not both' };

const scheduleTitle = z.string().trim().min(1).max(200);
const overlap = z
  .enum(SCHEDULE_OVERLAPS)
  .describe('`skip`, the default: no task is created while a task of this schedule is open. `allow`: always.');

const taskTemplateSchema = z.strictObject(everyTask).refine(namesOneOwner, ONE_OWNER).meta({
  id: 'TaskTemplate',
  description:
    'As the body that creates a task, without `dedupeKey`, `scheduledAt` and `dueAt`. Parent and prerequisites are looked up each time the schedule fires.',
});

/** Body of the create. */
export const newScheduleSchema = z
  .strictObject({
    key: z
      .string()
      .max(63)
      .regex(KEY, 'must be of lower-case letters and digits, with single hyphens between them')
      .refine((text) => !isUuid(text), 'must not look like a UUID')
      .optional()
      .describe('Stable and unique in the organization. Default: derived from the id.')
      .meta({ examples: ['weekly-sales-report'] }),
    title: scheduleTitle.optional().describe('Default: the title of the tasks.'),
    cron,
    timezone: timeZone
      .optional()
      .describe(
        '`UTC`, or an IANA name such as Europe/Berlin; no abbreviation. Default: the time zone of the organization.',
      ),
    taskTemplate: taskTemplateSchema,
    overlap: overlap.optional(),
  })
  .meta({ id: 'NewSchedule' });

const { title, spec: _spec, ...others } = everyTask;

const taskTemplatePatchSchema = z
  .strictObject({ title: title.optional(), ...removable({ spec: taskSpecPatchSchema, ...others }) })
  .refine(namesOneOwner, ONE_OWNER)
  .meta({
    id: 'TaskTemplatePatch',
    description: 'Merged into `taskTemplate`. Naming the owner in one way removes the other.',
  });

/** Body of the PATCH: a JSON merge patch with the version it was made from. */
export const schedulePatchSchema = z
  .strictObject({
    expectedVersion: z
      .int()
      .min(1)
      .max(MAX_VERSION)
      .describe('`version` of the schedule that the change is based on. 409 if it has changed since.'),
    title: scheduleTitle.optional(),
    cron: cron.optional(),
    timezone: timeZone.optional(),
    taskTemplate: taskTemplatePatchSchema.optional(),
    overlap: overlap.nullable().optional(),
  })
  .meta({ id: 'SchedulePatch', description: 'A JSON merge patch (RFC 7396): null restores a default.' });

export const newScheduleExample = {
  key: 'weekly-sales-report',
  title: 'Weekly sales report',
  cron: '0 9 * * MON',
  timezone: 'Europe/Berlin',
  taskTemplate: {
    title: 'Write the weekly sales report',
    ownerProfileKey: 'growth',
    spec: { objective: 'Summarize the orders of the last seven days by region in report.json.' },
  },
};
