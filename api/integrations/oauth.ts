import type { Request } from 'express';
import { z } from 'zod';
import type { Config } from '../../engine/config.ts';
import { ACCESS_MODES } from '../../engine/integration_states.ts';
import {
  checkAuthorization,
  deleteGrant,
  isAuthorized,
  revokeGrant,
  startFlow,
} from '../../engine/integrations/index.ts';
import { type Provider, providers } from '../../engine/providers/index.ts';
import { organizationId, storedUuid } from '../fields/ids.ts';
import { dateTime } from '../fields/timestamp.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { ids } from '../http/openapi/example_values.ts';
import { unique } from '../organizations/changes.ts';
import { integrationRef } from './changes.ts';
import { readOf } from './connecting.ts';
import { INTEGRATION } from './owner.ts';
import { forbidden, notFound, notReady, providerFailed, providerUnavailable } from './owner_errors.ts';

/** Where browsers and providers reach us: PUBLIC_URL, else where the API listens. */
export function publicUrl({ integrations, host }: Config, req: Request): string {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return integrations.publicUrl ?? `http://${name.includes(':') ? `[${name}]` : name}:${req.socket.localPort}`;
}

const startedSchema = z
  .object({
    authorizationUrl: z.url().describe('A page of this service for the browser of whoever authorizes. A secret.'),
    expiresAt: dateTime,
  })
  .meta({ id: 'IntegrationAuthorization' });

const linkSchema = z.object({ id: storedUuid, key: z.string() });
const grantSchema = z
  .object({
    revoked: z.boolean().describe('False: the provider could not be reached, or has no way to.'),
    unlinked: z.array(linkSchema).describe('Connections of this organization that hung on it.'),
    changedMeanwhile: z.array(linkSchema).describe('Connections that have changed since: look at them.'),
    otherOrganizations: z.int().describe('In how many other organizations connections need authorization again.'),
  })
  .meta({ id: 'RevokedGrant' });

const replaceAccount = z
  .boolean()
  .optional()
  .describe('True: the account may be another than the connected one, which it replaces.');
const accessMode = z.enum(ACCESS_MODES);

/** `google-workspace` → `GoogleWorkspace` */
const pascal = (key: string) => key.replace(/(?:^|-)(.)/g, (_all, letter: string) => letter.toUpperCase());

/** What a person says when they begin: nothing of the client, which is the deployment's. */
function startBody({ key, services, tools }: Provider) {
  const writes = tools.length === 0 || tools.some(({ effect }) => effect === 'write');
  const names = services.map((service) => service.key);
  const anyMode = writes
    ? { accessMode: accessMode.optional().describe('What to ask for. Default: `read_only`.') }
    : {};
  return z
    .strictObject({
      ...(names.length === 0
        ? anyMode
        : {
            accessMode: accessMode.describe('What to ask for.'),
            enabledTools: unique(z.enum(names as [string, ...string[]]), names.length)
              .min(1)
              .describe('The services to ask for.'),
          }),
      replaceAccount,
    })
    .meta({ id: `${pascal(key)}Authorization` });
}

const givenSchema = z.object({
  accessMode: z.enum(ACCESS_MODES).default('read_only'),
  enabledTools: z.array(z.string()).default([]),
  replaceAccount: z.boolean().default(false),
});

const shared = {
  audience: 'owner',
  tag: 'Integrations',
  params: { organizationId, integrationRef },
  ownerToken: true,
  external: true,
  costly: true,
} as const;

const about = { subject: 'integration' } as const;

function startExample({ services, tools }: Provider) {
  if (services.length > 0) return { accessMode: 'read_only', enabledTools: ['gmail'] };
  const writes = tools.length === 0 || tools.some(({ effect }) => effect === 'write');
  return writes ? { accessMode: 'read_only' } : { replaceAccount: true };
}

function startEndpoint(provider: Provider): Endpoint {
  const discovered = provider.settings?.beforeConnection === true;
  return endpoint({
    ...shared,
    method: 'post',
    path: `${INTEGRATION}/oauth/${provider.key}/start`,
    operationId: `start${pascal(provider.key)}Authorization`,
    summary: `Begin to authorize ${provider.title}`,
    description:
      'The address is of a page whose button goes on to the provider. It works once, for ten minutes, in one browser, which comes back with a `result`: `connected`, `denied`, `failed`, `expired` or `conflict`.',
    idempotencyKey: 'ignored',
    body: startBody(provider),
    response: { data: startedSchema },
    errors: [notFound, forbidden, notReady, ...(discovered ? [providerFailed, providerUnavailable] : [])],
    example: {
      body: startExample(provider),
      data: {
        authorizationUrl: 'https://runner.example/oauth/begin/Zk3vW0c',
        expiresAt: '2026-11-29T12:10:00.000Z',
      },
    },
    decision: { action: 'integration.authorize', ...about, id: ['flow', 'integrationId'] },
    async handler(context) {
      const { services, req, caller, commit, decision, signal, body } = context;
      const integration = await readOf(context, provider.key);
      const given = givenSchema.parse(body);
      const request = {
        services: given.enabledTools,
        accessMode: given.accessMode,
        replaceAccount: given.replaceAccount,
        starter: caller.subject,
      };
      await checkAuthorization(services.integrations, integration, request, { signal });
      const { ticket, expiresAt } = await commit((db) => startFlow(db, integration, request, decision));
      return { authorizationUrl: `${publicUrl(services.config, req)}/oauth/begin/${ticket}`, expiresAt };
    },
  });
}

function grantEndpoint(provider: Provider): Endpoint {
  return endpoint({
    ...shared,
    method: 'delete',
    path: `${INTEGRATION}/oauth/${provider.key}/grant`,
    operationId: `revoke${pascal(provider.key)}Grant`,
    summary: `Revoke the authorization of ${provider.title}`,
    description:
      'Ends it at the provider, with all connections that hang on it, those of other organizations too; here also where the provider cannot be reached, and `revoked` is false.',
    response: { data: grantSchema },
    errors: [notFound, notReady],
    example: {
      data: {
        revoked: true,
        unlinked: [{ id: ids.integration, key: 'web-shop' }],
        changedMeanwhile: [],
        otherOrganizations: 0,
      },
    },
    decision: { action: 'integration.revoke_grant', ...about, id: ['integrationId'] },
    async handler(context) {
      const { services, commit, decision, signal } = context;
      const integration = await readOf(context, provider.key);
      const revoked = await revokeGrant(services.integrations, integration, { signal });
      const deleted = await commit((db) => deleteGrant(db, revoked, decision));
      return { revoked: revoked.revoked, ...deleted };
    },
  });
}

/** Authorizations, a path for each provider that has them. */
export function integrationOAuthEndpoints(): readonly Endpoint[] {
  return [...providers.values()]
    .filter(isAuthorized)
    .flatMap((provider) => [startEndpoint(provider), grantEndpoint(provider)]);
}
