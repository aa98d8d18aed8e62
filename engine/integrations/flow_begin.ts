import { z } from 'zod';
import { call } from '../db/call.ts';
import { ACCESS_MODES, OAUTH_RESULTS } from '../integration_states.ts';
import { inTime, type OAuth2 } from '../providers/index.ts';
import { beginAuthorization } from '../providers/oauth/index.ts';
import { isDiscovered, knownAuthorization, openAuthorization } from './authorization.ts';
import { newSecret, secretHash } from './digests.ts';
import { discoverAuthorization, readConnected, registeredAuthorization } from './flow_authorization.ts';
import { type Integrations, organizationClient } from './integrations.ts';
import { notReady, withProblems } from './problems.ts';
import { type ReadIntegration, readIntegration } from './record.ts';
import { sealField } from './secrets.ts';
import { providerContext } from './stored.ts';

/** A flow as pages and callbacks see it. */
export const flowSchema = z.object({
  id: z.uuid(),
  organizationId: z.uuid(),
  organizationName: z.string(),
  integrationId: z.uuid(),
  integrationKey: z.string(),
  provider: z.string(),
  connectionRevision: z.int(),
  services: z.array(z.string()),
  accessMode: z.enum(ACCESS_MODES),
  replaceAccount: z.boolean(),
  starter: z.string().nullable(),
  expiresAt: z.string(),
  result: z.enum(OAUTH_RESULTS).nullable(),
});
export type Flow = z.output<typeof flowSchema>;

export const flowResult = z.looseObject({ flow: flowSchema.nullable() });
const ticketResult = z.object({ flow: flowSchema.nullable(), clientInDoubt: z.boolean() });
const foundSchema = z.object({ organizationId: z.uuid().optional(), id: z.uuid().optional() });

/** The secrets of a flow, sealed until its callback. */
export const pendingSchema = z.object({
  redirectUri: z.string(),
  state: z.string(),
  verifier: z.string(),
  nonce: z.string().nullable(),
  scopes: z.array(z.string()),
  /** Of a server that was found: what is kept of it. */
  authorization: z.string().nullable(),
  /** OAuth 1.0a. */
  requestToken: z.object({ token: z.string(), secret: z.string() }).nullable(),
});
export type Pending = z.output<typeof pendingSchema>;

export const FLOW_FIELD = 'oauth_flow';

/** Whose flow it is; undefined: nobody's, or of one that is over for long. */
export async function findFlow(
  { db }: Pick<Integrations, 'db'>,
  kind: 'ticket' | 'state' | 'request_token',
  secret: string,
): Promise<Readonly<{ organizationId: string; id: string }> | undefined> {
  const { organizationId, id } = await call(
    db,
    'integration_oauth_find',
    { kind, hash: secretHash(secret) },
    foundSchema,
  );
  return organizationId === undefined || id === undefined ? undefined : { organizationId, id };
}

async function openTicket(integrations: Pick<Integrations, 'db'>, ticket: string) {
  const found = await findFlow(integrations, 'ticket', ticket);
  if (!found) return { flow: null, clientInDoubt: false };
  const args = { organizationId: found.organizationId, ticketHash: secretHash(ticket) };
  return call(integrations.db.of(found.organizationId), 'integration_oauth_ticket', args, ticketResult);
}

/** The flow that a ticket begins; null: unknown, used, or past its end. Changes nothing: the button of the page does. */
export async function readTicket(integrations: Pick<Integrations, 'db'>, ticket: string): Promise<Flow | null> {
  return (await openTicket(integrations, ticket)).flow;
}

type Begun = Readonly<{ pending: Pending; url: URL }>;
/** clientInDoubt: a server that registers clients may no longer know ours. */
type Options = Readonly<{ redirectUri: string; clientInDoubt: boolean; signal: AbortSignal }>;

async function beginOAuth2(
  integrations: Integrations,
  integration: ReadIntegration,
  flow: Flow,
  { redirectUri, clientInDoubt, signal }: Options,
): Promise<Begun> {
  const { provider, organizationId } = integration;
  const { oauth2 } = provider;
  if (oauth2 === undefined) throw new TypeError(`${provider.key} has no OAuth 2`);
  const client = await organizationClient(integrations, organizationId, provider.key);
  async function known(of: OAuth2) {
    const authorization = knownAuthorization(integrations, provider, of);
    const { openId, parameters } = of;
    return { authorization, kept: null, scopes: of.scopes(flow.services, flow.accessMode), openId, parameters };
  }
  async function found() {
    if (oauth2 === undefined || !isDiscovered(oauth2)) throw new TypeError(`${provider.key} is not discovered`);
    const stored = await readConnected(integrations, integration);
    const server = await discoverAuthorization(integrations, integration, oauth2, { stored, signal });
    if (server === null) throw notReady('connection', 'no_authorization', 'the server asks for no authorization');
    const kept = await registeredAuthorization(integrations, integration, oauth2, server, {
      stored,
      redirectUri,
      isNewClient: clientInDoubt,
      signal,
    });
    const { scopes } = server;
    return { authorization: openAuthorization(oauth2, kept), kept, scopes, openId: false, parameters: {} };
  }
  const { authorization, kept, scopes, openId, parameters } = isDiscovered(oauth2)
    ? await found()
    : await known(oauth2);
  const { server, resource } = authorization;
  const request = { client: authorization.client, redirectUri, scopes, openId, resource, parameters };
  const { url, state, verifier, nonce } = await beginAuthorization({ client }, server, request);
  return {
    url,
    pending: {
      redirectUri,
      state,
      verifier,
      nonce,
      scopes: [...scopes],
      authorization: kept,
      requestToken: null,
    },
  };
}

async function beginOAuth1(
  integrations: Integrations,
  { provider, organizationId, record }: ReadIntegration,
  flow: Flow,
  { redirectUri, signal }: Options,
): Promise<Begun> {
  if (provider.oauth1 === undefined) throw new TypeError(`${provider.key} has no OAuth 1.0a`);
  const client = await organizationClient(integrations, organizationId, provider.key);
  const context = providerContext(integrations, provider, client, { account: record.id, signal });
  const { token, secret, url } = await provider.oauth1.begin(context, {
    callbackUrl: redirectUri,
    accessMode: flow.accessMode,
  });
  const pending: Pending = {
    redirectUri,
    // Nobody sends it back: the request token is what the flow is found by.
    state: newSecret(),
    verifier: '',
    nonce: null,
    scopes: [],
    authorization: null,
    requestToken: { token, secret },
  };
  return { url, pending };
}

/**
 * The button of the page: the ticket is used up, and the browser that pressed it is the one that the callback has to come from.
 * @returns where it goes, and the secret of its cookie; null for a ticket that is unknown, used or over: of two at once one begins
 * @throws Problem
 */
export async function beginFlow(
  integrations: Integrations,
  ticket: string,
  options: Readonly<{
    redirectUri: (provider: string) => string;
    signal?: AbortSignal | undefined;
    /** All requests to the provider together. */
    deadlineMs?: number;
  }>,
): Promise<Readonly<{ flow: Flow; browser: string; url: URL }> | null> {
  const { flow, clientInDoubt } = await openTicket(integrations, ticket);
  if (flow === null) return null;
  const { organizationId, integrationId, connectionRevision } = flow;
  return withProblems(async () => {
    const integration = await readIntegration(integrations, { organizationId, integrationRef: integrationId });
    const { provider } = integration;
    const redirectUri = options.redirectUri(provider.key);
    const begin = provider.oauth1 === undefined ? beginOAuth2 : beginOAuth1;
    const { pending, url } = await inTime(provider.key, options, (signal) =>
      begin(integrations, integration, flow, { redirectUri, clientInDoubt, signal }),
    );
    const place = { organizationId, integrationId, field: FLOW_FIELD, revision: connectionRevision };
    const { encryptionKeys } = integrations.settings;
    const browser = newSecret();
    const args = {
      organizationId,
      ticketHash: secretHash(ticket),
      begin: {
        browserHash: secretHash(browser),
        stateHash: secretHash(pending.state),
        ...(pending.requestToken ? { requestTokenHash: secretHash(pending.requestToken.token) } : {}),
        sealed: sealField(encryptionKeys, provider.key, place, JSON.stringify(pending)),
      },
    };
    const { flow: begun } = await call(integrations.db.of(organizationId), 'integration_oauth_begin', args, flowResult);
    return begun === null ? null : { flow: begun, browser, url };
  });
}
