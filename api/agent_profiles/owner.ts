import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { agentCatalogExample, agentCatalogSchema, currentCatalog } from '../agent_catalogs/schema.ts';
import { organizationId, uuid } from '../fields/ids.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { ids } from '../http/openapi/example_values.ts';
import {
  agentProfilePatchSchema,
  changesReach,
  namesToolPolicy,
  newAgentProfileSchema,
  provisionSchema,
  requireProfileUris,
} from './changes.ts';
import { agentProfileListQuery, getAgentProfile, listAgentProfiles } from './list.ts';
import {
  agentProfileExample,
  agentProfileResult,
  agentProfileSchema,
  provisionedSchema,
  provisionResult,
} from './schema.ts';

const params = { organizationId, id: uuid.meta({ description: 'The agent profile.', examples: [ids.growthProfile] }) };
const notFound = {
  status: 404,
  code: 'agent_profile_not_found',
  when: 'the profile does not exist in this organization',
} as const;
const keyInUse = { status: 409, code: 'state_conflict', when: 'the key is in use in the organization' } as const;

/** Agent profiles and their templates, for people. */
export function agentProfileEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/agent-profiles',
      audience: 'owner',
      tag: 'Agent profiles',
      operationId: 'listAgentProfiles',
      summary: 'List agent profiles',
      description: 'Newest first.',
      params: { organizationId },
      query: agentProfileListQuery,
      response: { data: z.array(agentProfileSchema), list: true },
      example: { data: [agentProfileExample] },
      handler: ({ db, params, query }) => listAgentProfiles(db, params.organizationId, query),
    }),
    endpoint({
      method: 'post',
      path: '/organizations/{organizationId}/agent-profiles',
      audience: 'owner',
      tag: 'Agent profiles',
      operationId: 'createAgentProfile',
      summary: 'Create an agent profile',
      description:
        '`key`, `name` and `kind` are required. `department` is required for department profiles and 400 for others. With `toolPolicyKeys` it takes an owner’s token in `open` mode too.',
      params: { organizationId },
      ownerToken: namesToolPolicy,
      body: newAgentProfileSchema,
      response: { status: 201, data: agentProfileSchema },
      errors: [keyInUse],
      example: {
        body: { key: 'growth', name: 'Growth', kind: 'department', department: 'growth' },
        data: agentProfileExample,
      },
      decision: { action: 'agent_profile.create', subject: 'agent_profile', id: ['agent_profile', 'id'] },
      async handler({ db, params: { organizationId }, body, decision }) {
        requireProfileUris(organizationId, body);
        const args = { organizationId, fields: body };
        return (await call(db, 'agent_profile_create', args, agentProfileResult, decision)).agent_profile;
      },
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/agent-profiles/{id}',
      audience: 'owner',
      tag: 'Agent profiles',
      operationId: 'getAgentProfile',
      summary: 'Get an agent profile',
      description: 'Disabled profiles too, but not deleted ones.',
      params,
      response: { data: agentProfileSchema },
      errors: [notFound],
      example: { data: agentProfileExample },
      handler: ({ db, params }) => getAgentProfile(db, params.organizationId, params.id),
    }),
    endpoint({
      method: 'patch',
      path: '/organizations/{organizationId}/agent-profiles/{id}',
      audience: 'owner',
      tag: 'Agent profiles',
      operationId: 'updateAgentProfile',
      summary: 'Change an agent profile',
      description:
        'A JSON merge patch (RFC 7396). Disabling a profile ends its claims and execution tokens, cancels its runs, fails its pending replies in chats with `runtime_unavailable` and blocks its open tasks with `{kind: profile}`; enabling it unblocks them. Another status, kind, department or tool policy raises the `authorizationEpoch` of the organization. Tool policy, kind and department take an owner’s token in `open` mode too.',
      params,
      ownerToken: changesReach,
      body: agentProfilePatchSchema,
      response: { data: agentProfileSchema },
      errors: [notFound, keyInUse],
      example: { body: { status: 'disabled' }, data: agentProfileExample },
      decision: { action: 'agent_profile.update', subject: 'agent_profile', id: ['agent_profile', 'id'] },
      async handler({ db, params: { organizationId, id }, body, decision }) {
        requireProfileUris(organizationId, body);
        const args = { organizationId, agentProfileId: id, patch: body };
        const result = await call(db, 'agent_profile_update', args, agentProfileResult, decision);
        return result.agent_profile;
      },
    }),
    endpoint({
      method: 'delete',
      path: '/organizations/{organizationId}/agent-profiles/{id}',
      audience: 'owner',
      tag: 'Agent profiles',
      operationId: 'deleteAgentProfile',
      summary: 'Delete an agent profile',
      description:
        'Disables the profile, with the same effects as an update, and hides it. Its tasks and runs still refer to it, and its key can be used again. Returns the profile; a repeated call is 404.',
      params,
      response: { data: agentProfileSchema },
      errors: [notFound],
      example: { data: agentProfileExample },
      decision: { action: 'agent_profile.delete', subject: 'agent_profile', id: ['agent_profile', 'id'] },
      async handler({ db, params, decision }) {
        const args = { organizationId: params.organizationId, agentProfileId: params.id };
        const result = await call(db, 'agent_profile_delete', args, agentProfileResult, decision);
        return result.agent_profile;
      },
    }),
    endpoint({
      method: 'get',
      path: '/agent-profile-templates',
      audience: 'owner',
      tag: 'Agent profiles',
      operationId: 'getAgentProfileTemplates',
      summary: 'Get the current template catalog',
      description: 'The templates that agent profiles can be provisioned from.',
      response: { data: agentCatalogSchema },
      errors: [
        { status: 503, code: 'request_failed', when: 'no catalog is published, or the database cannot be reached' },
      ],
      codes: { 503: 'request_failed' },
      example: { data: agentCatalogExample },
      handler: ({ db }) => currentCatalog(db),
    }),
    endpoint({
      method: 'post',
      path: '/organizations/{organizationId}/agent-profiles/provision',
      audience: 'owner',
      tag: 'Agent profiles',
      operationId: 'provisionAgentProfiles',
      summary: 'Provision agent profiles from a template catalog',
      description:
        'Pins the operator profile, the chat profile and the selected department profiles to one catalog revision: missing profiles are created, disabled ones enabled. Provisioned department profiles that are not selected are disabled. Edited names are kept, narrowed tool policies are not widened, and profiles created by hand are not changed. Repeating the call changes nothing.',
      params: { organizationId },
      body: provisionSchema,
      response: { data: provisionedSchema },
      errors: [
        { status: 404, code: 'request_failed', when: 'the organization or the catalog revision does not exist' },
        { status: 409, code: 'state_conflict', when: 'a profile created by hand has the key of a template' },
        { status: 503, code: 'request_failed', when: 'no catalog is published, or the database cannot be reached' },
      ],
      codes: { 404: 'request_failed', 503: 'request_failed' },
      example: {
        body: { departments: ['growth'] },
        data: {
          revision: agentProfileExample.config.catalogSource.revision,
          profiles: [agentProfileExample],
          disabledProfileIds: [],
        },
      },
      decision: { action: 'agent_profile.provision', subject: 'organization' },
      async handler({ db, params, body, decision }) {
        const args = {
          organizationId: params.organizationId,
          departments: body.departments,
          revision: body.revision,
        };
        return call(db, 'agent_profiles_provision', args, provisionResult, decision);
      },
    }),
  ];
}
