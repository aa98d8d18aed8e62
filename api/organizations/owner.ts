import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { organizationId } from '../fields/ids.ts';
import { requireTimeZone } from '../fields/time_zone.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { PULL_CHANNEL } from '../run_requests/pull_broker.ts';
import {
  newOrganizationSchema,
  organizationPatchSchema,
  requireOrganizationUris,
  workDispatchBody,
} from './changes.ts';
import { getOrganization, listOrganizations, organizationListQuery } from './list.ts';
import {
  organizationAnswer,
  organizationExample,
  organizationSchema,
  workDispatchAnswer,
  workDispatchSchema,
} from './schema.ts';

const slugInUse = { status: 409, code: 'request_failed', when: 'the slug is in use' } as const;
const suspension = {
  status: 403,
  code: 'forbidden',
  when: 'a viewer writes, or a member who is no platform operator sets or lifts suspended',
} as const;

/** Contract 4.2. Operators see all organizations, subjects of JWTs those they are members of. */
export function organizationEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/organizations',
      audience: 'owner',
      tag: 'Organizations',
      operationId: 'listOrganizations',
      summary: 'List organizations',
      description: 'Newest first. With JWTs: those that the caller is a member of.',
      query: organizationListQuery,
      response: { data: z.array(organizationSchema), list: true },
      example: { data: [organizationExample] },
      handler: ({ db, caller, query }) => listOrganizations(db, caller, query),
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}',
      audience: 'owner',
      tag: 'Organizations',
      operationId: 'getOrganization',
      summary: 'Get an organization',
      params: { organizationId },
      response: { data: organizationSchema },
      example: { data: organizationExample },
      handler: ({ db, params }) => getOrganization(db, params.organizationId),
    }),
    endpoint({
      method: 'post',
      path: '/organizations/{organizationId}',
      audience: 'owner',
      membership: 'none',
      tag: 'Organizations',
      operationId: 'createOrganization',
      summary: 'Create an organization',
      description:
        'The id is the client’s. slug and name are required; status is active and config and constraints hold their defaults where the body says nothing. With the status `onboarding` it has no onboarding of ours (`POST /organization-onboardings` makes one): its tasks are handed out, and a change of the status makes it active. With JWTs the caller becomes its owner.',
      params: { organizationId },
      body: newOrganizationSchema,
      response: { status: 201, data: organizationSchema },
      errors: [suspension, slugInUse, { status: 409, code: 'state_conflict', when: 'the id is in use' }],
      example: { body: { slug: 'north-light', name: 'North Light Ltd' }, data: organizationExample },
      decision: { action: 'organization.create', subject: 'organization' },
      async handler({ db, params: { organizationId }, body, caller, decision }) {
        requireOrganizationUris(organizationId, body);
        await requireTimeZone(db, 'config.timezone', body.config?.timezone);
        const args = { organizationId, fields: body, subject: caller.subject };
        return (await call(db, 'organization_create', args, organizationAnswer, decision)).organization;
      },
    }),
    endpoint({
      method: 'patch',
      path: '/organizations/{organizationId}',
      audience: 'owner',
      tag: 'Organizations',
      operationId: 'updateOrganization',
      summary: 'Change an organization',
      description:
        'A JSON merge patch. Changed constraints raise authorizationEpoch, which never sinks. While the organization is being onboarded, changed name, time zone and departments are the setup’s too, which raises the onboarding’s generation and, in review, makes a new review; only its completion sets `active`, and without such an onboarding nothing sets `onboarding`. Suspending hands out nothing more and takes back what no worker has started; started runs may finish.',
      params: { organizationId },
      body: organizationPatchSchema,
      response: { data: organizationSchema },
      errors: [
        suspension,
        slugInUse,
        {
          status: 409,
          code: 'state_conflict',
          when: '`issues[0].code` says why: `lowered` (authorizationEpoch), `not_onboarded` (active before the onboarding is completed), `no_onboarding` (onboarding without one, or after it)',
        },
      ],
      example: { body: { config: { limits: { maxConcurrentRuns: 10 } } }, data: organizationExample },
      decision: { action: 'organization.update', subject: 'organization' },
      async handler({ db, params: { organizationId }, body, caller, notify, decision }) {
        requireOrganizationUris(organizationId, body);
        await requireTimeZone(db, 'config.timezone', body.config?.timezone);
        const args = { organizationId, patch: body, platform: caller.platform };
        const { organization } = await call(db, 'organization_update', args, organizationAnswer, decision);
        // A raised limit or a lifted suspension opens it for waiting workers.
        notify(PULL_CHANNEL);
        return organization;
      },
    }),
    endpoint({
      method: 'delete',
      path: '/organizations/{organizationId}',
      audience: 'owner',
      tag: 'Organizations',
      operationId: 'deleteOrganization',
      summary: 'Delete an organization',
      description:
        'Hides it and ends its leases and capabilities at once; its rows and files are removed in the background. Answers the organization as it was; a repeat is 404.',
      params: { organizationId },
      response: { data: organizationSchema },
      example: { data: organizationExample },
      decision: { action: 'organization.delete', subject: 'organization' },
      async handler({ db, params, decision }) {
        const args = { organizationId: params.organizationId };
        return (await call(db, 'organization_delete', args, organizationAnswer, decision)).organization;
      },
    }),
    endpoint({
      method: 'patch',
      path: '/organizations/{organizationId}/work-dispatch',
      audience: 'owner',
      tag: 'Organizations',
      operationId: 'setWorkDispatch',
      summary: 'Stop or resume work dispatch',
      description:
        'Stopped: schedules, tasks and run requests are kept, and nothing more is published; what is published or running goes on. Resumed: due run requests are published. A repeat changes nothing.',
      params: { organizationId },
      body: workDispatchBody,
      response: { data: workDispatchSchema },
      example: {
        body: { stopped: false },
        data: { organization: organizationExample, publishedRunRequests: 3 },
      },
      decision: {
        action: ({ stopped }) => (stopped ? 'dispatch.stop' : 'dispatch.resume'),
        subject: 'organization',
        arguments: () => ({}),
      },
      async handler({ db, params, body, caller, notify, decision }) {
        const args = {
          organizationId: params.organizationId,
          stopped: body.stopped,
          actor: actorOf(caller),
        };
        const answer = await call(db, 'work_dispatch_set', args, workDispatchAnswer, decision);
        if (answer.publishedRunRequests > 0) notify(PULL_CHANNEL);
        return answer;
      },
    }),
  ];
}
