import { z } from 'zod';
import { organizationId } from '../fields/ids.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { listSchedules, scheduleListQuery } from './list.ts';
import { scheduleExample, scheduleSchema } from './schema.ts';

/** What a person sees of schedules; agents create and change them. */
export function scheduleEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/schedules',
      audience: 'owner',
      tag: 'Schedules',
      operationId: 'listSchedules',
      summary: 'List schedules',
      description: 'Newest first. Agents create and change schedules.',
      params: { organizationId },
      query: scheduleListQuery,
      response: { data: z.array(scheduleSchema), list: true },
      example: { data: [scheduleExample] },
      handler: ({ db, params, query }) => listSchedules(db, params.organizationId, query),
    }),
  ];
}
