import { z } from 'zod';
import {
  ACCESS_MODES,
  CONNECTION_KINDS,
  DISCOVERY_STATUSES,
  GATEWAY_KINDS,
  INTEGRATION_STATUSES,
  READINESSES,
  REPAIR_STATUSES,
  TOOL_EFFECTS,
  TOOL_REASONS,
  TOOL_RISKS,
  UNAVAILABLE_REASONS,
} from '../../engine/integration_states.ts';
import { mapping } from '../../engine/mapping.ts';
import { storedUuid } from '../fields/ids.ts';
import { dateTime, nullableTimestamp, timestamp } from '../fields/timestamp.ts';
import { department } from '../organizations/schema.ts';

const inputSchema = z.looseObject({}).describe('JSON Schema of the input.');
const effect = z.enum(TOOL_EFFECTS).describe('`read`: looks. `write`: changes something outside.');
const risk = z.enum(TOOL_RISKS).describe('`low`; `external`: others see it; `high`: money, or hard to take back.');

const toolSchema = z
  .object({
    key: z.string(),
    title: z.string(),
    description: z.string(),
    effect,
    risk,
    enabled: z.boolean().describe('Its owner lets agents use it.'),
    available: z.boolean().describe('The connection and the access mode allow it.'),
    unavailableReason: z.enum(TOOL_REASONS).nullable(),
    requiredScopes: z.array(z.string()).describe('One of them has to be granted. Empty: any connection will do.'),
    inputSchema,
    digest: z.string().describe('Of what enabling it stands for. It changes with the tool.'),
  })
  .meta({ id: 'IntegrationTool' });

const accessMode = z.enum(ACCESS_MODES).describe('`full`: tools that write may be enabled.');
const readiness = z
  .enum(READINESSES)
  .describe('Computed. `ready` and `degraded` (the provider fails or limits us, and recovers by itself) can be used.');

const connectionSchema = z
  .object({
    kind: z.enum(CONNECTION_KINDS),
    account: z.object({ label: z.string().nullable().describe('Masked.') }),
    grantedScopes: z.array(z.string()).describe('Empty where the provider tells none.'),
    connectedAt: dateTime,
    revision: z.int().describe('Rises with each connection, replacement and disconnect.'),
  })
  .meta({ id: 'IntegrationConnection' });

const failure = z.object({ code: z.string(), message: z.string() });

export const discoverySchema = z
  .object({
    at: dateTime,
    status: z.enum(DISCOVERY_STATUSES),
    error: failure.nullable().describe('In our words: nothing of what the provider said.'),
  })
  .meta({ id: 'IntegrationDiscovery' });

export const integrationSchema = z
  .object({
    id: storedUuid,
    organizationId: storedUuid,
    key: z.string().describe('Stable and unique in the organization.'),
    provider: z.string(),
    name: z.string(),
    status: z.enum(INTEGRATION_STATUSES).describe('`disabled`: its owner has turned it off.'),
    readiness,
    accessMode,
    services: z.array(z.string()).describe('What was selected of the provider when it was authorized.'),
    departments: z.array(department).describe('Whose agents may use it. Empty: all.'),
    settings: z
      .looseObject({ kind: z.string() })
      .nullable()
      .describe('What of the provider may be reached, as `putIntegrationSettings` takes it.'),
    tools: z.array(toolSchema),
    connection: connectionSchema.nullable(),
    contextMapping: z.looseObject({}).nullable().describe('What it means to the organization, as last asked for.'),
    discovery: discoverySchema.nullable().describe('When the provider was last asked what there is.'),
    createdAt: dateTime,
    updatedAt: dateTime,
  })
  .meta({ id: 'Integration' });
export type Integration = z.output<typeof integrationSchema>;

const toolRow = z
  .object({
    key: z.string(),
    title: z.string(),
    description: z.string(),
    effect: z.enum(TOOL_EFFECTS),
    risk: z.enum(TOOL_RISKS),
    enabled: z.boolean(),
    unavailable_reason: z.enum(TOOL_REASONS).nullable(),
    required_scopes: z.array(z.string()),
    input_schema: z.looseObject({}),
    digest: z.string(),
  })
  .pipe(
    mapping((row) => ({
      key: row.key,
      title: row.title,
      description: row.description,
      effect: row.effect,
      risk: row.risk,
      enabled: row.enabled,
      available: row.unavailable_reason === null,
      unavailableReason: row.unavailable_reason,
      requiredScopes: row.required_scopes,
      inputSchema: row.input_schema,
      digest: row.digest,
    })),
  );

const connectionRow = z
  .object({
    kind: z.enum(CONNECTION_KINDS),
    account_label: z.string().nullable(),
    granted_scopes: z.array(z.string()).nullable(),
    connected_at: timestamp,
    revision: z.int(),
  })
  .pipe(
    mapping((row) => ({
      kind: row.kind,
      account: { label: row.account_label },
      grantedScopes: row.granted_scopes ?? [],
      connectedAt: row.connected_at,
      revision: row.revision,
    })),
  );

/** What `app.integration_record` returns, with the revision that changes of the connection are compared by. */
const storedRow = z
  .object({
    organization_id: z.string(),
    id: z.string(),
    key: z.string(),
    provider: z.string(),
    name: z.string(),
    status: z.enum(INTEGRATION_STATUSES),
    readiness: z.enum(READINESSES),
    access_mode: z.enum(ACCESS_MODES),
    services: z.array(z.string()),
    departments: z.array(department),
    settings: z.looseObject({ kind: z.string() }).nullable(),
    tools: z.array(toolRow),
    connection: connectionRow.nullable(),
    connection_revision: z.int(),
    context_mapping: z.looseObject({}).nullable(),
    discovery_at: nullableTimestamp,
    discovery_status: z.enum(DISCOVERY_STATUSES).nullable(),
    discovery_error: failure.nullable(),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .pipe(
    mapping((row) => {
      const integration: Integration = {
        id: row.id,
        organizationId: row.organization_id,
        key: row.key,
        provider: row.provider,
        name: row.name,
        status: row.status,
        readiness: row.readiness,
        accessMode: row.access_mode,
        services: row.services,
        departments: row.departments,
        settings: row.settings,
        tools: row.tools,
        connection: row.connection,
        contextMapping: row.context_mapping,
        discovery:
          row.discovery_at === null || row.discovery_status === null
            ? null
            : { at: row.discovery_at, status: row.discovery_status, error: row.discovery_error },
        createdAt: row.created_at,
        updatedAt: row.updated_at,
      };
      return { integration, connectionRevision: row.connection_revision };
    }),
  );

/** What a transition of an integration returns. */
export const integrationResult = z.object({ integration: storedRow }).pipe(mapping(({ integration }) => integration));
export type StoredIntegration = z.output<typeof integrationResult>;
export const integrationsResult = z
  .object({ integrations: z.array(storedRow), cut: z.boolean() })
  .pipe(mapping(({ integrations, cut }) => ({ items: integrations.map(({ integration }) => integration), cut })));

export const repairSchema = z.object({ repairId: storedUuid, status: z.enum(REPAIR_STATUSES) });

/** As agents see it. */
export const agentIntegrationSchema = z
  .object({
    id: storedUuid,
    key: z.string(),
    provider: z.string(),
    name: z.string(),
    readiness: readiness.describe('Without live health: never `degraded`.'),
    accessMode,
    departments: z.array(department),
    capabilities: z
      .array(z.object({ tool: z.string(), effect, risk, inputSchema }))
      .describe('The tools that the caller may use. Empty where `available` is false.'),
    available: z.boolean(),
    unavailableReason: z.enum(UNAVAILABLE_REASONS).nullable(),
  })
  .meta({ id: 'AgentIntegration' });
export type AgentIntegration = z.output<typeof agentIntegrationSchema>;
export const agentIntegrationResult = z
  .object({ integration: agentIntegrationSchema })
  .pipe(mapping(({ integration }) => integration));
export const agentIntegrationsResult = z
  .object({ integrations: z.array(agentIntegrationSchema), cut: z.boolean() })
  .pipe(mapping(({ integrations, cut }) => ({ items: integrations, cut })));

/** What an execution calls the gateway with. */
export const resolvedSchema = z.object({
  integration: agentIntegrationSchema,
  gateway: z.object({
    capability: z.string().describe('The bearer of the gateway. Not shown again.'),
    expiresAt: dateTime,
    kind: z.enum(GATEWAY_KINDS),
    url: z.string().describe('What paths of the gateway begin with.'),
  }),
});
export const resolvedResult = z.object({
  integration: agentIntegrationSchema,
  gateway: z.object({ integrationId: z.string(), expiresAt: timestamp, kind: z.enum(GATEWAY_KINDS) }),
});

const nullableText = z.string().nullable();
const truncated = z.boolean().describe('There is more than is shown.');

/** What a discovery found, each in the provider's own shape. */
export const discoveredSchema = z.object({
  discovery: discoverySchema,
  items: z.array(z.looseObject({})),
  truncated,
});
export const storesSchema = z.object({
  items: z.array(
    z.object({ id: z.string(), name: nullableText, slug: nullableText, domain: nullableText, currency: nullableText }),
  ),
  truncated,
});
export const resourcesSchema = z.object({
  collections: z.array(z.object({ name: z.string(), fields: z.array(z.string()) })),
  truncated,
});
export const propertiesSchema = z.object({
  items: z.array(
    z.object({
      id: z.string(),
      name: nullableText,
      account: nullableText,
      timeZone: nullableText,
      currency: nullableText,
    }),
  ),
  truncated,
});
