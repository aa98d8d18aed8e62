import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { organizationId } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { newScheduleExample, newScheduleSchema, scheduleRef } from './changes.ts';
import { listSchedules, scheduleListQuery } from './list.ts';
import { firstFire, resumedFire, scheduleAnswer, scheduleExample, scheduleSchema } from './schema.ts';

const BASE = '/internal/agent/organizations/{organizationId}/schedules';
const MAY =
  'The service token and runs of operator and chat profiles change schedules; a run of a department profile or a verifying one: 401.';

const pausing = {
  path: `${BASE}/{scheduleRef}/pause`,
  audience: 'agent',
  tag: 'Agent tools',
  params: { organizationId, scheduleRef },
  response: { data: scheduleSchema },
} as const;

/** Contract 4.12: schedules (decisions 8). */
export function agentScheduleEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: BASE,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'listSchedulesAsAgent',
      summary: 'List schedules',
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
      summary: 'Make tasks by the clock',
      description: `Each fire makes one task of the template, however many processes run. Fires missed while the service was down make one task together, fires missed by a pause none. While work dispatch is stopped a schedule makes no further task as long as one of its tasks is open. A fire that can make no task (its owner is disabled, its parent is over, a limit is reached) puts one notification into the inbox, and the schedule goes on. A run that names no owner of the tasks means its own profile. What could not be a task now (its parent, a prerequisite, its chat or its owner is not there, its parent takes no tasks, a limit is reached) is refused as the creation of that task would be. 409 when the key is in use. ${MAY}`,
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
        return (await call(db, 'schedule_create', args, scheduleAnswer)).schedule;
      },
    }),
    endpoint({
      ...pausing,
      method: 'post',
      operationId: 'pauseScheduleAsAgent',
      summary: 'Pause a schedule',
      description: `It does not fire until it is resumed, and what it misses is not made up for. A repeat answers the same. ${MAY}`,
      async handler({ db, params, caller }) {
        const args = {
          organizationId: params.organizationId,
          scheduleRef: params.scheduleRef,
          actor: actorOf(caller),
        };
        return (await call(db, 'schedule_pause', args, scheduleAnswer)).schedule;
      },
    }),
    endpoint({
      ...pausing,
      path: `${BASE}/{scheduleRef}/resume`,
      method: 'post',
      operationId: 'resumeScheduleAsAgent',
      summary: 'Resume a paused schedule',
      description: `It fires next at its first time from now on. A repeat answers the same. ${MAY}`,
      async handler({ db, params, caller }) {
        const args = {
          organizationId: params.organizationId,
          scheduleRef: params.scheduleRef,
          nextRunAt: await resumedFire(db, params.organizationId, params.scheduleRef),
          actor: actorOf(caller),
        };
        return (await call(db, 'schedule_resume', args, scheduleAnswer)).schedule;
      },
    }),
    endpoint({
      ...pausing,
      path: `${BASE}/{scheduleRef}`,
      method: 'delete',
      operationId: 'deleteScheduleAsAgent',
      summary: 'Delete a schedule',
      description: `Answers the schedule as it was. The tasks that it made stay. A repeat: 404. ${MAY}`,
      async handler({ db, params, caller }) {
        const args = {
          organizationId: params.organizationId,
          scheduleRef: params.scheduleRef,
          actor: actorOf(caller),
        };
        return (await call(db, 'schedule_delete', args, scheduleAnswer)).schedule;
      },
    }),
  ];
}
