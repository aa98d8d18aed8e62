import { z } from 'zod';
import { parseExpression } from '../../engine/schedules/index.ts';
import { isUuid } from '../fields/ids.ts';
import { timeZone } from '../fields/time_zone.ts';
import { newTaskSchema } from '../tasks/changes.ts';
import { SCHEDULE_OVERLAPS } from './schema.ts';

const KEY = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** `{scheduleRef}`: a schedule's UUID, or its key. */
export const scheduleRef = z
  .string()
  .max(63)
  .refine((text) => KEY.test(text) || isUuid(text), 'must be a UUID or a key such as weekly-report')
  .describe('UUID of a schedule, or its key.')
  .meta({ examples: ['weekly-report'] });

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
    'Minute, hour, day of month, month, day of week, of *, numbers, names, ranges, lists and steps. With a fixed hour, a local time that daylight saving leaves out fires at the next minute that is there, and one that comes twice fires once; with * or steps in the hour real time counts.',
  )
  .meta({ examples: ['0 9 * * MON'] });

// What belongs to one task alone is left to each fire.
const { dedupeKey: _key, scheduledAt: _start, dueAt: _due, ...everyTask } = newTaskSchema.shape;

const taskTemplateSchema = z
  .strictObject(everyTask)
  .refine((task) => !(task.ownerAgentProfileId && task.ownerProfileKey), {
    path: ['ownerProfileKey'],
    message: 'give ownerAgentProfileId or ownerProfileKey, not both',
  })
  .meta({
    id: 'TaskTemplate',
    description:
      'A task as its creation takes it, without dedupeKey, scheduledAt and dueAt. Its parent and prerequisites are looked up at each fire.',
  });

/** Body of the create (contract 4.12, decisions 8). */
export const newScheduleSchema = z
  .strictObject({
    key: z
      .string()
      .max(63)
      .regex(KEY, 'must be of lower-case letters and digits, with single hyphens between them')
      .refine((text) => !isUuid(text), 'must not look like a UUID')
      .optional()
      .describe('Stable and unique in the organization. Default: made of the id.')
      .meta({ examples: ['weekly-report'] }),
    title: z.string().trim().min(1).max(200).optional().describe('Default: the title of its tasks.'),
    cron,
    timezone: timeZone
      .optional()
      .describe("`UTC` or the IANA name of a place, no abbreviation. Default: the organization's."),
    taskTemplate: taskTemplateSchema,
    overlap: z
      .enum(SCHEDULE_OVERLAPS)
      .optional()
      .describe('skip, the default: a fire makes no task while one of this schedule is open.'),
  })
  .meta({ id: 'NewSchedule' });

export const newScheduleExample = {
  key: 'weekly-report',
  title: 'Report of the week',
  cron: '0 9 * * MON',
  timezone: 'Europe/Berlin',
  taskTemplate: {
    title: 'Report on the sales of the week',
    ownerProfileKey: 'growth',
    spec: { objective: 'Sum up the sales of the last seven days by region into report.json' },
  },
};
