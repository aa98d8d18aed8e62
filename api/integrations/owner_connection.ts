import { call } from '../../engine/db/call.ts';
import { type LookUp, type Provider, providers } from '../../engine/providers/index.ts';
import { organizationId } from '../fields/ids.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { credentialBody, integrationRef, resourcesBody, settingsBody, storesBody } from './changes.ts';
import { discoverIntegration, isTruncated, lookUpChoices, putCredential, putSettings } from './connecting.ts';
import {
  collectionExample,
  credentialExamples,
  integrationExample,
  propertyExample,
  storeExample,
} from './examples.ts';
import { INTEGRATION } from './owner.ts';
import { conflict, notFound, notReady, ofProvider } from './owner_errors.ts';
import {
  discoveredSchema,
  integrationResult,
  integrationSchema,
  propertiesSchema,
  resourcesSchema,
  storesSchema,
} from './schema.ts';

/** The provider that a person may ask this of. */
function providerOf(lookUp: LookUp): Provider {
  const found = [...providers.values()].find((provider) => provider.lookUp === lookUp);
  if (!found) throw new Error(`no provider has ${lookUp}`);
  return found;
}
const stores = providerOf('stores').key;
const resources = providerOf('resources').key;
const properties = providerOf('properties').key;

const one = {
  audience: 'owner',
  tag: 'Integrations',
  params: { organizationId, integrationRef },
  ownerToken: true,
} as const;
const changed = { ...one, response: { data: integrationSchema }, example: { data: integrationExample } } as const;
const about = { subject: 'integration', id: ['integration', 'id'] } as const;
const rejected = { status: 400, code: 'credential_rejected', when: 'the provider does not accept the credential' };
const asked = { ...one, external: true, costly: true, idempotencyKey: 'ignored' } as const;
const refused = [notFound, notReady, ...ofProvider];
const differs = {
  status: 409,
  code: 'integration_account_differs',
  when: 'the credential is of another account than the connected one, and `replaceAccount` is not true',
};
const invalid = {
  status: 400,
  code: 'settings_invalid',
  when: 'they are not those of the provider, the connection does not reach what they name, or the organization blocks it',
};

/** Integrations of an organization, for people: what asks a provider, and the connection. */
export function connectionEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      ...changed,
      path: `${INTEGRATION}/settings`,
      method: 'put',
      operationId: 'putIntegrationSettings',
      summary: 'Set what of the provider may be reached',
      description:
        'Where the integration is connected the provider is asked first, and what it does not have is refused. Another `serverUrl` or `restUrl` ends the connection. Settings outlive a disconnect.',
      external: true,
      costly: true,
      body: settingsBody,
      errors: [invalid, ...refused, conflict],
      example: { body: { settings: integrationExample.settings }, data: integrationExample },
      decision: { action: 'integration.configure', ...about },
      handler: (context) => putSettings(context, context.body.settings),
    }),
    endpoint({
      ...changed,
      path: `${INTEGRATION}/credential`,
      method: 'put',
      operationId: 'putIntegrationCredential',
      summary: 'Connect by a credential',
      description:
        'The provider is asked whose it is before it is stored, encrypted. It is never shown again. A credential of the same account is no replacement: the revision stays.',
      external: true,
      costly: true,
      body: credentialBody,
      errors: [rejected, ...refused, conflict, differs],
      example: { bodies: credentialExamples, data: integrationExample },
      decision: {
        action: 'integration.connect',
        ...about,
        // Nothing of the credential but its kind.
        arguments: ({ kind, replaceAccount }, params) => ({
          integrationRef: params.integrationRef,
          kind,
          ...(replaceAccount === undefined ? {} : { replaceAccount }),
        }),
      },
      handler: (context) => putCredential(context, context.body),
    }),
    endpoint({
      ...changed,
      path: `${INTEGRATION}/credential`,
      method: 'delete',
      operationId: 'disconnectIntegration',
      summary: 'Disconnect an integration',
      description:
        'Unlinks this connection alone and removes its secrets at once. The authorization at the provider stays, and so do settings and tools. A repeat changes nothing.',
      errors: [notFound],
      decision: { action: 'integration.disconnect', ...about },
      handler: async ({ db, params, decision }) =>
        (await call(db, 'integration_disconnect', params, integrationResult, decision)).integration,
    }),
    endpoint({
      ...one,
      path: `${INTEGRATION}/discover`,
      method: 'post',
      operationId: 'discoverIntegration',
      summary: 'Ask the provider what there is',
      description:
        'Within 25 seconds. How it went is recorded in `discovery`, also where it failed. Tools that a server has changed are off. `items` are what settings are chosen from, and are not kept.',
      external: true,
      costly: true,
      response: { data: discoveredSchema },
      errors: [...refused, conflict],
      example: {
        data: {
          discovery: integrationExample.discovery,
          items: [storeExample],
          truncated: false,
        },
      },
      handler: discoverIntegration,
    }),
    endpoint({
      ...asked,
      path: `${INTEGRATION}/${stores}/stores`,
      method: 'post',
      operationId: 'listIntegrationStores',
      summary: 'List the stores of a key',
      description: 'Of the stored key, or of the one given. At most 200; neither key nor result is kept.',
      body: storesBody,
      response: { data: storesSchema },
      errors: [rejected, ...refused],
      example: {
        body: { apiKey: credentialExamples['lemon-squeezy'].apiKey },
        data: { items: [storeExample], truncated: false },
      },
      handler: async (context) => {
        const { apiKey } = context.body;
        const credential = apiKey === undefined ? undefined : { kind: 'api_key', apiKey };
        const { items, truncated } = await lookUpChoices(context, stores, { credential });
        return storesSchema.parse({ items, truncated });
      },
    }),
    endpoint({
      ...asked,
      path: `${INTEGRATION}/${resources}/resources`,
      method: 'post',
      operationId: 'listIntegrationResources',
      summary: 'List the collections of a database',
      description:
        'Names of at most 200 collections, and dotted names of fields of a few documents each. No value of a document is shown, and nothing is kept.',
      body: resourcesBody,
      response: { data: resourcesSchema },
      errors: [rejected, ...refused],
      example: {
        body: { databaseName: 'shop' },
        data: { collections: [collectionExample], truncated: false },
      },
      handler: async (context) => {
        const { databaseName, credential } = context.body;
        const settings = { kind: resources, databaseName, collections: [] };
        const found = await lookUpChoices(context, resources, { credential, settings });
        return resourcesSchema.parse({ collections: found.items, truncated: isTruncated(found) });
      },
    }),
    endpoint({
      ...asked,
      path: `${INTEGRATION}/${properties}/properties`,
      method: 'get',
      ownerToken: false,
      operationId: 'listIntegrationProperties',
      summary: 'List the properties of the account',
      description: 'At most 200, with time zone and currency. Nothing is kept.',
      response: { data: propertiesSchema },
      errors: refused,
      example: { data: { items: [propertyExample], truncated: false } },
      handler: async (context) => propertiesSchema.parse(await lookUpChoices(context, properties, {})),
    }),
  ];
}
