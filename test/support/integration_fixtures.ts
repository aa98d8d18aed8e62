// Integrations as tests work with them, made through the transitions with the rights of the API.
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { functionText } from '../../engine/db/function_text.ts';
import { authorizationEpoch, SERVICE, sha256, type TestOrganization, updateProfile } from './fixtures.ts';
import { type Connection, type JsonObject, type Sql, transition } from './transitions.ts';

const toolSchema = z.looseObject({
  key: z.string(),
  effect: z.string(),
  enabled: z.boolean(),
  offered: z.boolean(),
  unavailable_reason: z.string().nullable(),
});
const integrationSchema = z.looseObject({
  id: z.string(),
  key: z.string(),
  provider: z.string(),
  status: z.string(),
  readiness: z.string(),
  access_mode: z.string(),
  connection_revision: z.int(),
  connection: z.looseObject({ kind: z.string(), revision: z.int() }).nullable(),
  tools: z.array(toolSchema),
});
export type IntegrationRow = z.output<typeof integrationSchema>;

/** Where an integration is; most need no profile. */
type Place = Pick<TestOrganization, 'organizationId'>;
const resultSchema = z.object({ integration: integrationSchema });

/** The integration that a transition returns. */
export function integrationOf(result: JsonObject): IntegrationRow {
  return resultSchema.parse(result).integration;
}

/** Of a provider; nothing is asked of one. */
export function tool(key: string, fields: JsonObject = {}) {
  return {
    key,
    title: key,
    effect: 'read',
    risk: 'low',
    requiredScopes: [],
    inputSchema: { type: 'object' },
    digest: sha256(key),
    ...fields,
  };
}

export const READ = tool('items.list', { requiredScopes: ['read'] });
export const WRITE = tool('items.create', { effect: 'write', risk: 'external', requiredScopes: ['write'] });

export function integrationCreate(connection: Connection, org: Place, fields: JsonObject = {}) {
  return transition(connection, 'integration_create', {
    organizationId: org.organizationId,
    integration: {
      key: `i-${randomUUID().slice(0, 8)}`,
      provider: 'stripe',
      name: 'Test',
      settingsRequired: false,
      tools: [READ, WRITE],
      ...fields,
    },
  });
}

export async function createIntegration(
  sql: Pick<Sql, 'api'>,
  org: Place,
  fields: JsonObject = {},
): Promise<IntegrationRow> {
  return integrationOf(await integrationCreate(sql.api, org, fields));
}

export async function readIntegration(
  sql: Pick<Sql, 'api'>,
  org: TestOrganization,
  integrationRef: string,
): Promise<IntegrationRow> {
  const { organizationId } = org;
  return integrationOf(await transition(sql.api, 'integration_read', { organizationId, integrationRef }));
}

/** As it is stored: bytes that mean nothing. */
export function sealed(field: string, text = field) {
  const base64 = (value: string) => Buffer.from(value).toString('base64');
  return { field, keyId: 'k1', wrappedKey: base64(`key of ${text}`), ciphertext: base64(text) };
}

/** The facts of a connection to an account, which it has a digest of. */
export function account(name: string, fields: JsonObject = {}) {
  return {
    kind: 'api_key',
    accountLabel: `…${name}`,
    subjectHash: sha256(name),
    grantedScopes: ['read', 'write'],
    ...fields,
  };
}

export type ConnectFields = Readonly<{
  revision?: number;
  nextRevision?: number;
  secrets?: readonly JsonObject[];
  replaceAccount?: boolean;
}>;

export function connect(
  connection: Connection,
  org: TestOrganization,
  integrationRef: string,
  facts: JsonObject = account('acme'),
  fields: ConnectFields = {},
) {
  const {
    revision = 0,
    nextRevision = revision + 1,
    secrets = [sealed('credential')],
    replaceAccount = false,
  } = fields;
  return transition(connection, 'integration_connect', {
    organizationId: org.organizationId,
    integrationRef,
    revision,
    nextRevision,
    connection: facts,
    secrets,
    replaceAccount,
  });
}

/** An integration that is connected, with all of its tools on. */
export async function createConnected(
  sql: Pick<Sql, 'api'>,
  org: TestOrganization,
  fields: JsonObject = {},
  facts: JsonObject = account('acme'),
): Promise<IntegrationRow> {
  const { id } = await createIntegration(sql, org, fields);
  await connect(sql.api, org, id, facts);
  return integrationOf(
    await transition(sql.api, 'integration_tools_put', {
      organizationId: org.organizationId,
      integrationRef: id,
      change: { accessMode: 'full' },
    }),
  );
}

const flowSchema = z.looseObject({
  id: z.string(),
  result: z.string().nullable(),
  connectionRevision: z.int(),
  integrationKey: z.string(),
});
const flowResult = z.looseObject({ flow: flowSchema.nullable() });

/** The flow that a transition returns, which has to be there. */
export function flowOf(result: JsonObject) {
  const { flow } = flowResult.parse(result);
  if (!flow) throw new Error('there is no flow');
  return flow;
}

export type Flow = Readonly<{ id: string; ticket: string; state: string; browser: string }>;

/** A flow whose page was opened, and whose button was used. */
export async function beginFlow(
  sql: Pick<Sql, 'api'>,
  org: TestOrganization,
  integrationRef: string,
  fields: JsonObject = {},
): Promise<Flow> {
  const { organizationId } = org;
  const [ticket, state, browser] = [randomUUID(), randomUUID(), randomUUID()];
  const flow = {
    ticketHash: sha256(ticket),
    services: [],
    accessMode: 'full',
    replaceAccount: false,
    starter: null,
    ...fields,
  };
  await transition(sql.api, 'integration_oauth_start', { organizationId, integrationRef, flow });
  const { keyId, wrappedKey, ciphertext } = sealed('oauth_state');
  const begun = await transition(sql.api, 'integration_oauth_begin', {
    organizationId,
    ticketHash: sha256(ticket),
    begin: {
      browserHash: sha256(browser),
      stateHash: sha256(state),
      sealed: { keyId, wrappedKey, ciphertext },
    },
  });
  return { id: flowOf(begun).id, ticket, state, browser };
}

export function consumeFlow(
  connection: Connection,
  org: TestOrganization,
  flow: Pick<Flow, 'id' | 'browser'>,
  fields: Readonly<{ browser?: string; starter?: string | null; provider?: string }> = {},
) {
  const { browser = flow.browser, starter = null, provider = 'google-workspace' } = fields;
  return transition(connection, 'integration_oauth_consume', {
    organizationId: org.organizationId,
    flowId: flow.id,
    provider,
    browserHash: sha256(browser),
    starter,
  });
}

export function completeFlow(
  connection: Connection,
  org: TestOrganization,
  integrationId: string,
  flow: Flow,
  nextRevision: number,
  facts: JsonObject = account('acme', { kind: 'oauth2' }),
  secrets: readonly JsonObject[] = [sealed('access_token'), sealed('refresh_token')],
) {
  return transition(connection, 'integration_oauth_complete', {
    organizationId: org.organizationId,
    integrationId,
    flowId: flow.id,
    nextRevision,
    connection: facts,
    secrets,
  });
}

export type ResolveFields = Readonly<{
  actor?: JsonObject;
  authorizationEpoch?: number;
  kind?: string;
  /** The capability that is given; its digest is stored. */
  token?: string;
  runId?: string | null;
  seconds?: number;
  gitProviders?: readonly string[];
}>;

/** By the service token, for a run, unless said otherwise; with the current epoch. */
export async function resolveGateway(
  sql: Pick<Sql, 'api' | 'owner'>,
  org: TestOrganization,
  integrationRef: string,
  fields: ResolveFields = {},
): Promise<JsonObject> {
  const { actor = SERVICE, kind = 'cli', token = randomUUID(), runId = null, seconds = 900 } = fields;
  return transition(sql.api, 'integration_resolve', {
    organizationId: org.organizationId,
    actor,
    authorizationEpoch: fields.authorizationEpoch ?? (await authorizationEpoch(sql, org.organizationId)),
    integrationRef,
    kind,
    tokenHash: sha256(token),
    runId,
    seconds,
    gitProviders: fields.gitProviders ?? ['stripe'],
  });
}

/** What a profile may do with integrations. */
export function allow(sql: Pick<Sql, 'api'>, org: TestOrganization, ...toolPolicyKeys: string[]) {
  return updateProfile(sql.api, org, { config: { toolPolicyKeys } });
}

/** A row in every table of integrations, with a capability for an active run. */
export async function createIntegrationRows(
  sql: Pick<Sql, 'api' | 'owner'>,
  org: TestOrganization,
  runId: string,
): Promise<void> {
  const { id } = await createConnected(sql, org);
  await beginFlow(sql, org, id);
  await allow(sql, org, 'integrations.read');
  await resolveGateway(sql, org, id, { runId });
  const { organizationId } = org;
  const mapping = { role: 'primary' };
  await transition(sql.api, 'integration_context_mapping_put', { organizationId, integrationRef: id, mapping });
  const buckets = [{ key: organizationId, capacity: 10, perSecond: 1 }];
  await transition(sql.api, 'rate_limit_take', { buckets });
}

const DUE = functionText('integrations_due', { kind: '$1', organizations: '100', rows: '10' });

/** What of an organization the jobs find due. */
export async function dueIntegrations(
  sql: Pick<Sql, 'jobs'>,
  org: TestOrganization,
  kind: 'check' | 'refresh' | 'repair',
): Promise<unknown[]> {
  const { rows } = await sql.jobs.query(`select id from ${DUE} where organization_id = $2`, [kind, org.organizationId]);
  return rows.map((row) => row.id);
}
