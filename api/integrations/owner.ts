import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { organizationId } from '../fields/ids.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { ids } from '../http/openapi/example_values.ts';
import {
  contextMappingBody,
  integrationPatchSchema,
  integrationRef,
  newIntegrationSchema,
  statusBody,
  toolsBody,
} from './changes.ts';
import { integrationExample, newIntegrationData, newIntegrationExamples } from './examples.ts';
import { integrationListQuery, listIntegrations } from './list.ts';
import { createIntegration, readIntegration, selectTools } from './operations.ts';
import { forbidden, notFound } from './owner_errors.ts';
import { integrationResult, integrationSchema, repairSchema } from './schema.ts';

const INTEGRATIONS = '/organizations/{organizationId}/integrations';
export const INTEGRATION = `${INTEGRATIONS}/{integrationRef}` as const;

const one = {
  path: INTEGRATION,
  audience: 'owner',
  tag: 'Integrations',
  params: { organizationId, integrationRef },
  ownerToken: true,
  response: { data: integrationSchema },
  errors: [notFound],
  example: { data: integrationExample },
} as const;
const about = { subject: 'integration', id: ['integration', 'id'] } as const;

/** Integrations of an organization, for people: what needs no provider. */
export function integrationEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: INTEGRATIONS,
      audience: 'owner',
      tag: 'Integrations',
      operationId: 'listIntegrations',
      summary: 'List integrations',
      description: 'By key.',
      params: { organizationId },
      query: integrationListQuery,
      response: { data: z.array(integrationSchema), list: true },
      example: { data: [integrationExample] },
      handler: ({ db, params, query }) => listIntegrations(db, params.organizationId, query),
    }),
    endpoint({
      method: 'post',
      path: INTEGRATIONS,
      audience: 'owner',
      tag: 'Integrations',
      operationId: 'createIntegration',
      summary: 'Create an integration',
      description:
        'Not connected yet, with all tools off. Several integrations of one provider may exist. During an onboarding this raises its generation.',
      params: { organizationId },
      ownerToken: true,
      body: newIntegrationSchema,
      response: { status: 201, data: integrationSchema },
      errors: [forbidden, { status: 409, code: 'integration_conflict', when: 'the key is in use' }],
      example: { bodies: newIntegrationExamples, data: newIntegrationData },
      decision: { action: 'integration.create', ...about },
      handler: (context) => createIntegration(context, context.body),
    }),
    endpoint({
      ...one,
      method: 'get',
      ownerToken: false,
      operationId: 'getIntegration',
      summary: 'Get an integration',
      description: 'By its UUID or its key.',
      handler: async ({ db, params }) => (await readIntegration(db, params)).integration,
    }),
    endpoint({
      ...one,
      method: 'patch',
      operationId: 'updateIntegration',
      summary: 'Change name or departments',
      description: 'What is not given stays. A repeat changes nothing.',
      body: integrationPatchSchema,
      example: { body: { departments: ['growth'] }, data: integrationExample },
      decision: { action: 'integration.update', ...about },
      handler: async ({ db, params, body: patch, decision }) =>
        (await call(db, 'integration_update', { ...params, patch }, integrationResult, decision)).integration,
    }),
    endpoint({
      ...one,
      method: 'delete',
      operationId: 'deleteIntegration',
      summary: 'Delete an integration',
      description:
        'Returns it as it was. Its connection and secrets are gone at once; the authorization at the provider stays. A repeated call is 404.',
      decision: { action: 'integration.delete', ...about },
      handler: async ({ db, params, decision }) =>
        (await call(db, 'integration_delete', params, integrationResult, decision)).integration,
    }),
    endpoint({
      ...one,
      path: `${INTEGRATION}/status`,
      method: 'patch',
      operationId: 'setIntegrationStatus',
      summary: 'Enable or disable an integration',
      description: 'Nothing uses a disabled one. Connection, settings and tools stay. A repeat changes nothing.',
      body: statusBody,
      example: { body: { status: 'enabled' }, data: integrationExample },
      decision: {
        action: ({ status }) => (status === 'enabled' ? 'integration.enable' : 'integration.disable'),
        ...about,
      },
      handler: async ({ db, params, body: { status }, decision }) =>
        (await call(db, 'integration_status_set', { ...params, status }, integrationResult, decision)).integration,
    }),
    endpoint({
      ...one,
      path: `${INTEGRATION}/tools`,
      method: 'put',
      operationId: 'putIntegrationTools',
      summary: 'Choose the tools that agents may use',
      description:
        'A list enables exactly its tools; `accessMode` alone enables all that it and the granted scopes allow. Without `accessMode` it is `read_only`, and a tool that writes is 400. What is enabled of a server’s own tools holds until the server changes the tool.',
      body: toolsBody,
      errors: [notFound, { status: 409, code: 'integration_conflict', when: 'a tool has changed since it was read' }],
      example: { body: { tools: ['lemon_squeezy.orders.list'] }, data: integrationExample },
      decision: { action: 'integration.select_tools', ...about },
      handler: (context) => selectTools(context, context.body),
    }),
    endpoint({
      ...one,
      path: `${INTEGRATION}/context-mapping`,
      method: 'post',
      operationId: 'mapIntegrationContext',
      summary: 'Say what an integration means to the organization',
      description:
        'Queues a repair, by which the next health report names the integration. No context changes at once, and the connection does not depend on it.',
      body: contextMappingBody,
      response: { data: repairSchema },
      example: {
        body: { departments: ['growth'], businessFunctions: ['Sales'], role: 'primary' },
        data: { repairId: ids.repair, status: 'queued' },
      },
      decision: { action: 'integration.map_context', subject: 'integration_repair', id: ['repairId'] },
      handler: ({ db, params, body: mapping, decision }) =>
        call(db, 'integration_context_mapping_put', { ...params, mapping }, repairSchema, decision),
    }),
  ];
}
