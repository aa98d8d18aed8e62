import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { providers } from '../../engine/providers/index.ts';
import { organizationId } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import { sha256Hex } from '../http/auth/bearer.ts';
import { baseUrl } from '../http/base_url.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { ids } from '../http/openapi/example_values.ts';
import { integerText } from '../http/query.ts';
import { integrationRef, resolveBody } from './changes.ts';
import { agentIntegrationExample } from './examples.ts';
import { integrationListQuery, pageByKey, pageOf, seekArguments } from './list.ts';
import {
  agentIntegrationResult,
  agentIntegrationSchema,
  agentIntegrationsResult,
  resolvedResult,
  resolvedSchema,
} from './schema.ts';

const BASE = '/internal/agent/organizations/{organizationId}/integrations';
/** Each call of the gateway is checked anew, so that this bounds how long a lost capability is of any use. */
const CAPABILITY_SECONDS = 900;

const gitProviders = [...providers.values()].filter(({ git }) => git !== undefined).map(({ key }) => key);

const authorizationEpoch = integerText({
  minimum: 0,
  maximum: 2_147_483_647,
  description: 'The organization’s `authorizationEpoch` as the caller knows it. 409 if another one is current.',
});
const STALE = 'With another epoch than the current one it is 409 `stale_epoch`, and the issue names the current one.';

/** Integrations, for agents. */
export function agentIntegrationEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: BASE,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'listIntegrationsAsAgent',
      summary: 'List integrations',
      description: `By key, with what the caller’s profile may use of them. No provider is asked. ${STALE}`,
      params: { organizationId },
      query: { ...integrationListQuery, authorizationEpoch },
      response: { data: z.array(agentIntegrationSchema), list: true },
      example: { data: [agentIntegrationExample] },
      async handler({ db, params, query, caller }) {
        const page = pageByKey(`integrations_for_agent:${params.organizationId}`, query);
        const args = { ...params, actor: actorOf(caller), authorizationEpoch: query.authorizationEpoch };
        const all = { ...args, ...seekArguments(page) };
        return pageOf(page, await call(db, 'integrations_for_agent', all, agentIntegrationsResult));
      },
    }),
    endpoint({
      method: 'get',
      path: `${BASE}/{integrationKey}`,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'getIntegrationAsAgent',
      summary: 'Get an integration',
      description: `By its key or its UUID. No provider is asked. ${STALE}`,
      params: { organizationId, integrationKey: integrationRef },
      query: { authorizationEpoch },
      response: { data: agentIntegrationSchema },
      example: { data: agentIntegrationExample },
      handler({ db, params, query, caller }) {
        const args = { organizationId: params.organizationId, actor: actorOf(caller), ...query };
        const one = { ...args, integrationRef: params.integrationKey };
        return call(db, 'integration_agent_get', one, agentIntegrationResult);
      },
    }),
    endpoint({
      method: 'post',
      path: `${BASE}/resolve`,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'resolveIntegration',
      summary: 'Get a capability for the gateway',
      description: `For one execution and one integration, at most 15 minutes. Lease, epoch and connection are checked at each call. It is 409 where the integration is not available, or 100 capabilities of the execution have not expired; the issue says which. The URL is that of the gateway. An \`Idempotency-Key\` is ignored. ${STALE}`,
      params: { organizationId },
      idempotencyKey: 'ignored',
      body: resolveBody,
      response: { data: resolvedSchema },
      example: {
        body: { integrationKey: 'web-shop', authorizationEpoch: 4, kind: 'cli' },
        data: {
          integration: agentIntegrationExample,
          gateway: {
            capability: 'f0a35c1b7de2498c6b5d0f1e83a7c24496be0d7f52c18a3e9b46d0757fa1c83e',
            expiresAt: '2026-11-27T09:27:09.127Z',
            kind: 'cli',
            url: `https://runner.example/internal/cli/integrations/${ids.integration}`,
          },
        },
      },
      async handler({ db, params, body, caller, services, req }) {
        const { integrationKey, ...asked } = body;
        const capability = randomBytes(32).toString('hex');
        const args = { ...params, ...asked, integrationRef: integrationKey, actor: actorOf(caller) };
        const made = {
          ...args,
          tokenHash: sha256Hex(capability),
          runId: asked.runId,
          seconds: CAPABILITY_SECONDS,
          gitProviders,
        };
        const { integration, gateway } = await call(db, 'integration_resolve', made, resolvedResult);
        const { kind, expiresAt } = gateway;
        const url = `${baseUrl(services.config, req)}/internal/${kind}/integrations/${gateway.integrationId}`;
        return { integration, gateway: { capability, expiresAt, kind, url } };
      },
    }),
  ];
}
