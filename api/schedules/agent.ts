import { z } from 'zod';
import { organizationId } from '../fields/ids.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { newScheduleExample, newScheduleSchema, scheduleRef } from './changes.ts';
import { listSchedules, scheduleListQuery } from './list.ts';
import { createSchedule, resumeSchedule, stopSchedule } from './operations.ts';
import { scheduleExample, scheduleSchema } from './schema.ts';

const BASE = '/internal/agent/organizations/{organizationId}/schedules';
const MAY =
  'The service token and runs of operator and chat profiles can change schedules; runs of department profiles and runs with mode `verify` get 401.';

const pausing = {
  path: `${BASE}/{scheduleRef}/pause`,
  audience: 'agent',
  tag: 'Agent tools',
  params: { organizationId, scheduleRef },
  response: { data: scheduleSchema },
  example: { data: scheduleExample },
} as const;

/** Schedules, for agents. */
export function agentScheduleEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: BASE,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'listSchedulesAsAgent',
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
      path: BASE,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'createScheduleAsAgent',
      summary: 'Create a schedule',
      description: [
        'As `createSchedule`.',
        'A template from which no task could be created now is refused like the creation of that task. A run that names no owner means its own profile. A key that is in use is 409.',
        MAY,
      ].join('\n\n'),
      params: { organizationId },
      body: newScheduleSchema,
      response: { status: 201, data: scheduleSchema },
      example: { body: newScheduleExample, data: scheduleExample },
      handler: (context) => createSchedule(context, context.body),
    }),
    endpoint({
      ...pausing,
      method: 'post',
      operationId: 'pauseScheduleAsAgent',
      summary: 'Pause a schedule',
      description: `The schedule does not fire until it is resumed; missed times are not caught up. Pausing a paused schedule has no effect. ${MAY}`,
      handler: (context) => stopSchedule('schedule_pause', context),
    }),
    endpoint({
      ...pausing,
      path: `${BASE}/{scheduleRef}/resume`,
      method: 'post',
      operationId: 'resumeScheduleAsAgent',
      summary: 'Resume a paused schedule',
      description: `The schedule fires next at its first time after now. Resuming an active schedule has no effect. ${MAY}`,
      handler: (context) => resumeSchedule(context),
    }),
    endpoint({
      ...pausing,
      path: `${BASE}/{scheduleRef}`,
      method: 'delete',
      operationId: 'deleteScheduleAsAgent',
      summary: 'Delete a schedule',
      description: `Returns the schedule as it was. Its tasks stay. A repeated call is 404. ${MAY}`,
      handler: (context) => stopSchedule('schedule_delete', context),
    }),
  ];
}
