import { z } from 'zod';
import { organizationId } from '../fields/ids.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { newScheduleExample, newScheduleSchema, schedulePatchSchema, scheduleRef } from './changes.ts';
import { getSchedule, listSchedules, scheduleListQuery } from './list.ts';
import { createSchedule, resumeSchedule, stopSchedule, updateSchedule } from './operations.ts';
import { scheduleExample, scheduleSchema } from './schema.ts';

const SCHEDULES = '/organizations/{organizationId}/schedules';
const notFound = { status: 404, code: 'not_found', when: 'the schedule does not exist in this organization' } as const;
const taskNotFound = {
  status: 404,
  code: 'task_not_found',
  when: 'the template names a parent or a prerequisite that does not exist in this organization',
} as const;
const refused = 'a task of the template would be refused now';

const one = {
  path: `${SCHEDULES}/{scheduleRef}`,
  audience: 'owner',
  tag: 'Schedules',
  params: { organizationId, scheduleRef },
  response: { data: scheduleSchema },
  errors: [notFound],
  example: { data: scheduleExample },
} as const;
const about = { subject: 'schedule', id: ['schedule', 'id'] } as const;

/** Schedules, for people. */
export function scheduleEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: SCHEDULES,
      audience: 'owner',
      tag: 'Schedules',
      operationId: 'listSchedules',
      summary: 'List schedules',
      description: 'Newest first.',
      params: { organizationId },
      query: scheduleListQuery,
      response: { data: z.array(scheduleSchema), list: true },
      example: { data: [scheduleExample] },
      handler: ({ db, params, query }) => listSchedules(db, params.organizationId, query),
    }),
    endpoint({
      method: 'post',
      path: SCHEDULES,
      audience: 'owner',
      tag: 'Schedules',
      operationId: 'createSchedule',
      summary: 'Create a schedule',
      description: [
        'Each time the schedule fires, exactly one task is created from the template. Times missed while the service was down create one task together; times missed while the schedule was paused create none. While work dispatch is stopped, no further task is created as long as a task of the schedule is open. If a task cannot be created (its owner is disabled, its parent is no longer open, a limit is reached), the inbox gets one notification, and the schedule goes on.',
        'A template from which no task could be created now is refused like the creation of that task. Without an owner, the tasks are the operator’s.',
      ].join('\n\n'),
      params: { organizationId },
      body: newScheduleSchema,
      response: { status: 201, data: scheduleSchema },
      errors: [taskNotFound, { status: 409, code: 'state_conflict', when: `the key is in use, or ${refused}` }],
      example: { body: newScheduleExample, data: scheduleExample },
      decision: { action: 'schedule.create', ...about },
      handler: (context) => createSchedule(context, context.body),
    }),
    endpoint({
      ...one,
      method: 'get',
      operationId: 'getSchedule',
      summary: 'Get a schedule',
      description: 'By its UUID or its key.',
      handler: ({ db, params }) => getSchedule(db, params.organizationId, params.scheduleRef),
    }),
    endpoint({
      ...one,
      method: 'patch',
      operationId: 'updateSchedule',
      summary: 'Change a schedule',
      description:
        'A JSON merge patch (RFC 7396). With another expression or time zone, an active schedule fires next at its first time after now. Tasks that it has created stay as they are. A patch that changes nothing leaves the `version` as it is.',
      body: schedulePatchSchema,
      errors: [
        notFound,
        taskNotFound,
        { status: 409, code: 'state_conflict', when: `the schedule has changed since, or ${refused}` },
      ],
      example: {
        body: { expectedVersion: 1, cron: '30 8 * * MON' },
        data: scheduleExample,
      },
      decision: { action: 'schedule.update', ...about },
      handler: (context) => updateSchedule(context, context.body),
    }),
    endpoint({
      ...one,
      path: `${SCHEDULES}/{scheduleRef}/pause`,
      method: 'post',
      operationId: 'pauseSchedule',
      summary: 'Pause a schedule',
      description:
        'The schedule does not fire until it is resumed; missed times are not caught up. Pausing a paused schedule has no effect.',
      decision: { action: 'schedule.pause', ...about },
      handler: (context) => stopSchedule('schedule_pause', context),
    }),
    endpoint({
      ...one,
      path: `${SCHEDULES}/{scheduleRef}/resume`,
      method: 'post',
      operationId: 'resumeSchedule',
      summary: 'Resume a paused schedule',
      description: 'The schedule fires next at its first time after now. Resuming an active schedule has no effect.',
      errors: [notFound, { status: 409, code: 'state_conflict', when: 'somebody changes it meanwhile: try again' }],
      decision: { action: 'schedule.resume', ...about },
      handler: resumeSchedule,
    }),
    endpoint({
      ...one,
      method: 'delete',
      operationId: 'deleteSchedule',
      summary: 'Delete a schedule',
      description: 'Returns the schedule as it was. Its tasks stay. A repeated call is 404.',
      decision: { action: 'schedule.delete', ...about },
      handler: (context) => stopSchedule('schedule_delete', context),
    }),
  ];
}
