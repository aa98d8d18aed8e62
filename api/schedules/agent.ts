import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { organizationId } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { newScheduleExample, newScheduleSchema, scheduleRef } from './changes.ts';
import { listSchedules, scheduleListQuery } from './list.ts';
import { firstFire, resumedFire, scheduleExample, scheduleResult, scheduleSchema } from './schema.ts';

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
        'Each time the schedule fires, exactly one task is created from the template. Times missed while the service was down create one task together; times missed while the schedule was paused create none. While work dispatch is stopped, no further task is created as long as a task of the schedule is open. If a task cannot be created (its owner is disabled, its parent is no longer open, a limit is reached), the inbox gets one notification, and the schedule goes on.',
        'A template from which no task could be created now is refused like the creation of that task. A run that names no owner means its own profile. A key that is in use is 409.',
        MAY,
      ].join('\n\n'),
      params: { organizationId },
      body: newScheduleSchema,
      response: { status: 201, data: scheduleSchema },
      example: { body: newScheduleExample, data: scheduleExample },
      async handler({ db, params, body, caller }) {
        const { timezone, nextRunAt } = await firstFire(db, params.organizationId, body);
        const args = {
          organizationId: params.organizationId,
          schedule: { ...body, timezone },
          nextRunAt,
          actor: actorOf(caller),
        };
        return (await call(db, 'schedule_create', args, scheduleResult)).schedule;
      },
    }),
    endpoint({
      ...pausing,
      method: 'post',
      operationId: 'pauseScheduleAsAgent',
      summary: 'Pause a schedule',
      example: { data: { ...scheduleExample, status: 'paused', nextRunAt: null } },
      description: `The schedule does not fire until it is resumed; missed times are not caught up. Pausing a paused schedule has no effect. ${MAY}`,
      async handler({ db, params, caller }) {
        const args = {
          organizationId: params.organizationId,
          scheduleRef: params.scheduleRef,
          actor: actorOf(caller),
        };
        return (await call(db, 'schedule_pause', args, scheduleResult)).schedule;
      },
    }),
    endpoint({
      ...pausing,
      path: `${BASE}/{scheduleRef}/resume`,
      method: 'post',
      operationId: 'resumeScheduleAsAgent',
      summary: 'Resume a paused schedule',
      description: `The schedule fires next at its first time after now. Resuming an active schedule has no effect. ${MAY}`,
      async handler({ db, params, caller }) {
        const args = {
          organizationId: params.organizationId,
          scheduleRef: params.scheduleRef,
          nextRunAt: await resumedFire(db, params.organizationId, params.scheduleRef),
          actor: actorOf(caller),
        };
        return (await call(db, 'schedule_resume', args, scheduleResult)).schedule;
      },
    }),
    endpoint({
      ...pausing,
      path: `${BASE}/{scheduleRef}`,
      method: 'delete',
      operationId: 'deleteScheduleAsAgent',
      summary: 'Delete a schedule',
      description: `Returns the schedule as it was. Its tasks stay. A repeated call is 404. ${MAY}`,
      async handler({ db, params, caller }) {
        const args = {
          organizationId: params.organizationId,
          scheduleRef: params.scheduleRef,
          actor: actorOf(caller),
        };
        return (await call(db, 'schedule_delete', args, scheduleResult)).schedule;
      },
    }),
  ];
}
