import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { organizationId } from '../fields/ids.ts';
import { requireTimeZone } from '../fields/time_zone.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { times } from '../http/openapi/example_values.ts';
import {
  changesActions,
  newOrganizationSchema,
  organizationPatchSchema,
  requireOrganizationUris,
  workDispatchBody,
} from './changes.ts';
import { getOrganization, listOrganizations, organizationListQuery } from './list.ts';
import {
  organizationExample,
  organizationResult,
  organizationSchema,
  workDispatchResult,
  workDispatchSchema,
} from './schema.ts';

const slugInUse = { status: 409, code: 'request_failed', when: 'the slug is in use' } as const;
const suspension = {
  status: 403,
  code: 'forbidden',
  when: 'the caller may only read, or is not a platform operator and sets or lifts `suspended`',
} as const;

/** Operators see all organizations, subjects of JWTs those they are members of. */
export function organizationEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/organizations',
      audience: 'owner',
      tag: 'Organizations',
      operationId: 'listOrganizations',
      summary: 'List organizations',
      description: 'Newest first. With `OWNER_AUTH=jwt`, the organizations that the caller is a member of.',
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
      description: 'With its settings, limits and constraints.',
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
        'The client chooses the id. `slug` and `name` are required; everything else has a default, and the default status is `active`. Tasks need agent profiles: `provision` makes them. An organization that is created here with the status `onboarding` has no onboarding state (`POST /organization-onboardings` creates that): its tasks wait until its status is set to `active`. With `OWNER_AUTH=jwt` the caller becomes the owner.',
      params: { organizationId },
      body: newOrganizationSchema,
      response: { status: 201, data: organizationSchema },
      errors: [
        suspension,
        slugInUse,
        { status: 409, code: 'state_conflict', when: 'the id is in use' },
        { status: 503, code: 'request_failed', when: '`provision` is given and no catalog is published' },
      ],
      example: {
        body: { slug: 'lamp-studio', name: 'Lamp Studio', provision: true },
        data: { ...organizationExample, onboardedAt: null },
      },
      decision: { action: 'organization.create', subject: 'organization' },
      async handler({ db, params: { organizationId }, body, caller, decision }) {
        requireOrganizationUris(organizationId, body);
        await requireTimeZone(db, 'config.timezone', body.config?.timezone);
        const args = { organizationId, fields: body, subject: caller.subject };
        return (await call(db, 'organization_create', args, organizationResult, decision)).organization;
      },
    }),
    endpoint({
      method: 'patch',
      path: '/organizations/{organizationId}',
      audience: 'owner',
      tag: 'Organizations',
      operationId: 'updateOrganization',
      summary: 'Change an organization',
      description: [
        'A JSON merge patch (RFC 7396). Changed constraints raise `authorizationEpoch`, which cannot be lowered.',
        'While the organization is being onboarded, a changed name, time zone or list of departments changes the setup of the onboarding as well: its `generation` rises, and in review the review is computed again. Only completing the onboarding sets `active`.',
        'Suspending ends claims that no worker has started and hands out nothing more; started runs can finish.',
        '`constraints` and `config.limits.maxDailyActions` take an owner’s token in `open` mode too.',
      ].join('\n\n'),
      params: { organizationId },
      ownerToken: changesActions,
      body: organizationPatchSchema,
      response: { data: organizationSchema },
      errors: [
        suspension,
        slugInUse,
        {
          status: 409,
          code: 'state_conflict',
          when: '`issues[0].code` is `lowered` (`authorizationEpoch`), `not_onboarded` (`active` before the onboarding is completed) or `no_onboarding` (`onboarding` without an open onboarding)',
        },
      ],
      example: { body: { config: { limits: { maxConcurrentRuns: 10 } } }, data: organizationExample },
      decision: { action: 'organization.update', subject: 'organization' },
      async handler({ db, params: { organizationId }, body, caller, decision }) {
        requireOrganizationUris(organizationId, body);
        await requireTimeZone(db, 'config.timezone', body.config?.timezone);
        const args = { organizationId, patch: body, platform: caller.platform };
        const { organization } = await call(db, 'organization_update', args, organizationResult, decision);
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
        'Ends all leases and execution tokens of the organization and hides it immediately. Its data and files are removed in the background. Returns the organization as it was; a repeated call is 404.',
      params: { organizationId },
      response: { data: organizationSchema },
      example: { data: organizationExample },
      decision: { action: 'organization.delete', subject: 'organization' },
      async handler({ db, params, decision }) {
        const args = { organizationId: params.organizationId };
        return (await call(db, 'organization_delete', args, organizationResult, decision)).organization;
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
        'Stopping keeps schedules, tasks and run requests but publishes no more work; what is published or running continues. Resuming publishes the run requests that are due; while the organization has the status `onboarding`, dispatch stays held and nothing is published. Repeating a call changes nothing.',
      params: { organizationId },
      body: workDispatchBody,
      response: { data: workDispatchSchema },
      example: {
        body: { stopped: true },
        data: {
          organization: { ...organizationExample, workDispatchStoppedAt: times.finished },
          publishedRunRequests: 0,
        },
      },
      decision: {
        action: ({ stopped }) => (stopped ? 'dispatch.stop' : 'dispatch.resume'),
        subject: 'organization',
        arguments: () => ({}),
      },
      async handler({ db, params, body, caller, decision }) {
        const args = {
          organizationId: params.organizationId,
          stopped: body.stopped,
          actor: actorOf(caller),
        };
        return call(db, 'work_dispatch_set', args, workDispatchResult, decision);
      },
    }),
  ];
}
