import { z } from 'zod';
import { ACCESS_MODES, GATEWAY_KINDS, INTEGRATION_STATUSES, TOOL_EFFECTS } from '../../engine/integration_states.ts';
import { providers } from '../../engine/providers/index.ts';
import { isUuid } from '../fields/ids.ts';
import { SLUG, unique, WORDS } from '../organizations/changes.ts';
import { DEPARTMENTS, department } from '../organizations/schema.ts';
import { settingsExamples } from './examples.ts';

const MAX_KEY = 63;

/** `{integrationRef}`: an integration's UUID, or its key. */
export const integrationRef = z
  .string()
  .max(MAX_KEY)
  .refine((text) => SLUG.test(text) || isUuid(text), 'must be a UUID or a key such as web-shop')
  .describe('An integration: its UUID, or its key.')
  .meta({ examples: ['web-shop'] });

const provider = z.enum([...providers.keys()] as [string, ...string[]]).meta({ id: 'IntegrationProvider' });
const name = z.string().trim().min(1).max(200);
const departments = unique(department, DEPARTMENTS.length).describe(
  'Whose agents may use it. Empty, the default: all.',
);
const accessMode = z
  .enum(ACCESS_MODES)
  .describe('`read_only`, the default: no tool that writes can be enabled. `full`: all can.');

/** Body of the create. */
export const newIntegrationSchema = z
  .strictObject({
    key: z
      .string()
      .max(MAX_KEY)
      .regex(SLUG, WORDS)
      .refine((text) => !isUuid(text), 'must not look like a UUID')
      .describe('Stable and unique in the organization. The name of another provider is none.')
      .meta({ examples: ['web-shop'] }),
    provider,
    name: name.optional().describe('Default: the title of the provider.'),
    departments: departments.optional(),
    accessMode: accessMode.optional(),
  })
  .refine(({ key, provider: own }) => key === own || !providers.has(key), {
    path: ['key'],
    message: 'is the name of another provider',
  })
  .meta({ id: 'NewIntegration' });

/** Body of the PATCH. */
export const integrationPatchSchema = z
  .strictObject({ name: name.optional(), departments: departments.optional() })
  .meta({ id: 'IntegrationPatch' });

export const statusBody = z
  .strictObject({ status: z.enum(INTEGRATION_STATUSES).describe('`disabled`: nothing uses it until it is enabled.') })
  .meta({ id: 'IntegrationStatusChange' });

const toolKey = z.string().min(1).max(128);

export const toolsBody = z
  .strictObject({
    accessMode: accessMode.optional(),
    tools: unique(toolKey, 500)
      .min(1)
      .optional()
      .describe('Exactly these are enabled. Without it all that the access mode and the granted scopes allow.'),
    effects: z
      .record(toolKey, z.enum(TOOL_EFFECTS))
      .refine((effects) => Object.keys(effects).length <= 500, 'names at most 500 tools')
      .optional()
      .describe('Of a server whose tools are its own: which of them only read. Without it each of them writes.'),
    digests: z
      .record(toolKey, z.string().regex(/^[0-9a-f]{64}$/, 'must be the digest of a tool'))
      .refine((digests) => Object.keys(digests).length <= 500, 'names at most 500 tools')
      .optional()
      .describe('As you read them. Where a tool that this enables has another one, or none here, it is 409.'),
  })
  .refine(({ accessMode: mode, tools }) => mode !== undefined || tools !== undefined, {
    path: ['tools'],
    message: 'give tools, accessMode or both',
  })
  .meta({ id: 'IntegrationTools' });

/** One shape a provider, by `kind`. */
const settingsSchema = z
  .discriminatedUnion(
    'kind',
    [...providers.values()].flatMap(({ settings }) => (settings === null ? [] : [settings.schema])) as unknown as [
      z.ZodObject<{ kind: z.ZodLiteral<string> }>,
    ],
  )
  .meta({
    id: 'IntegrationSettings',
    description: '`kind` is the provider with `_`. An empty list allows nothing.',
    examples: settingsExamples,
  });

export const settingsBody = z.strictObject({ settings: settingsSchema }).meta({ id: 'IntegrationSettingsChange' });

const replaceAccount = z.boolean().optional();
const secret = z.string().min(1).max(4_000);

const mongoCredential = {
  kind: z.literal('mongodb'),
  host: z.string().min(1).max(253).describe('Without a port.'),
  port: z.int().min(1).max(65_535).optional(),
  srv: z.boolean().describe('The name has SRV records, which name the servers. Takes `tls`, and no `port`.'),
  username: z.string().min(1).max(200),
  password: z.string().min(1).max(1_000),
  authSource: z.string().min(1).max(63).optional().describe('Default: `admin`.'),
  tls: z.boolean(),
};

/** Body of the credential: never shown again. What of it a provider takes, the provider says. */
export const credentialBody = z
  .discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('api_key'), apiKey: secret, replaceAccount }),
    z.strictObject({ kind: z.literal('bearer_token'), token: secret, replaceAccount }),
    z.strictObject({ kind: z.literal('github_token'), token: secret, replaceAccount }),
    z.strictObject({ ...mongoCredential, replaceAccount }),
    z.strictObject({ kind: z.literal('none'), replaceAccount }),
  ])
  .meta({
    id: 'IntegrationCredential',
    description:
      'Write-only. `none`: the server asks for no authorization. `replaceAccount`: it may be of another account than the connected one.',
  });

export const storesBody = z
  .strictObject({ apiKey: secret.optional().describe('Default: the stored one. Not kept.') })
  .meta({ id: 'IntegrationStoresQuery' });

export const resourcesBody = z
  .strictObject({
    databaseName: z.string().min(1).max(63),
    credential: z.strictObject(mongoCredential).optional().describe('Default: the stored one. Not kept.'),
  })
  .meta({ id: 'IntegrationResourcesQuery' });

const words = (item: z.ZodType<string>) => unique(item, 50);
const phrase = z.string().trim().min(1).max(200);

export const contextMappingBody = z
  .strictObject({
    departments: unique(department, DEPARTMENTS.length).optional(),
    businessFunctions: words(phrase).optional(),
    workflowKeys: words(z.string().max(100).regex(SLUG, WORDS)).optional(),
    taskPatterns: words(phrase).optional(),
    role: z.enum(['primary', 'secondary']).optional().describe('Among integrations of the same purpose.'),
  })
  .refine((mapping) => Object.values(mapping).some((value) => (Array.isArray(value) ? value.length > 0 : value)), {
    path: [],
    message: 'give a department, business function, workflow key, task pattern or role',
  })
  .meta({ id: 'IntegrationContextMapping' });

export const resolveBody = z
  .strictObject({
    integrationKey: integrationRef,
    authorizationEpoch: z
      .int()
      .min(0)
      .max(2_147_483_647)
      .describe('`authorizationEpoch` of the organization as the caller knows it.'),
    kind: z.enum(GATEWAY_KINDS).describe('Which of the gateways.'),
    runId: z
      .guid('must be a UUID')
      .toLowerCase()
      .optional()
      .describe('The active run that it is for. The service token has to name it.'),
  })
  .meta({ id: 'IntegrationResolve' });
