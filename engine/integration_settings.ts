import { z } from 'zod';
import { ConfigError } from './config_error.ts';
import { encryptionKeys } from './secrets/index.ts';
import { httpUrl } from './setting_values.ts';

// The settings of integrations, as rows of engine/settings.ts, and what follows from several of them.

const secret = z.string().regex(/^[\x21-\x7e]{1,1000}$/, 'must be printable ASCII without spaces');

const isOrigin = (text: string) => URL.canParse(text) && new URL(text).origin === text;

/** From a provider's real origin to the one that is called instead. */
const providerOrigins = z
  .string()
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      context.addIssue({ code: 'custom', message: 'must be a JSON object from origin to origin' });
      return z.NEVER;
    }
  })
  .pipe(
    z.record(
      z.string(),
      z.string('must be a JSON object from origin to origin'),
      'must be a JSON object from origin to origin',
    ),
  )
  .refine(
    (map) => Object.entries(map).every((pair) => pair.every(isOrigin)),
    'each side is an origin, such as https://api.stripe.com, without a path and without a slash at its end',
  )
  .transform((map): ReadonlyMap<string, string> => new Map(Object.entries(map)));

/** Where a path is put behind, so it must not end in one of its own. */
const baseUrl = httpUrl
  .refine((text) => !/[?#]/.test(text), 'must have no query and no fragment')
  .transform((text) => text.replace(/(?<!\/)\/+$/, ''));

const credential = (help: string) => ({ schema: secret.optional(), default: undefined, help }) as const;

export const integrationSettings = {
  ENCRYPTION_KEYS: {
    schema: encryptionKeys.optional(),
    default: undefined,
    help: 'id:base64,…: 32 bytes each; the first one encrypts credentials, all decrypt; npm start makes one when none is set',
  },
  PUBLIC_URL: {
    schema: baseUrl.optional(),
    default: undefined,
    help: 'address of the API as browsers and providers see it, for OAuth callbacks (default: where the API listens)',
  },
  FRONTEND_URL: {
    schema: baseUrl.optional(),
    default: undefined,
    help: 'where a browser goes after an OAuth callback (default: a page of the API)',
  },
  GOOGLE_CLIENT_ID: credential('OAuth client of Google, for google-workspace and google-analytics'),
  GOOGLE_CLIENT_SECRET: credential('the secret that belongs to GOOGLE_CLIENT_ID'),
  GITHUB_CLIENT_ID: credential('client of the GitHub App'),
  GITHUB_CLIENT_SECRET: credential('the secret that belongs to GITHUB_CLIENT_ID'),
  X_ADS_CONSUMER_KEY: credential('consumer key of the X app'),
  X_ADS_CONSUMER_SECRET: credential('the secret that belongs to X_ADS_CONSUMER_KEY'),
  MCP_CLIENT_ID: credential('client ID that MCP authorization servers know beforehand'),
  MCP_CLIENT_METADATA_URL: {
    schema: z
      .url({ protocol: /^https$/, error: 'must be an https URL' })
      // A client ID metadata document is distinguished from other client IDs by its path.
      .refine((text) => !URL.canParse(text) || new URL(text).pathname !== '/', 'must have a path')
      .optional(),
    default: undefined,
    help: 'client ID metadata document for MCP authorization servers, in place of MCP_CLIENT_ID',
  },
  PROVIDER_ORIGINS: {
    schema: providerOrigins.optional(),
    default: undefined,
    help: 'JSON object from the origin of a provider to the one to call instead; with ALLOW_PRIVATE_ADDRESSES=1 alone (tests)',
  },
} as const;

type Rows = typeof integrationSettings;
export type IntegrationValues = { [K in keyof Rows]: z.output<Rows[K]['schema']> };

/** A client of this deployment at an authorization server. */
export type DeploymentClient = Readonly<{ id: string; secret: string }>;

export type IntegrationConfig = Readonly<{
  /** Empty: no credential can be kept. */
  encryptionKeys: NonNullable<IntegrationValues['ENCRYPTION_KEYS']>;
  publicUrl: string | undefined;
  frontendUrl: string | undefined;
  /** By the name of their setting; undefined: connections of its providers cannot be authorized. */
  oauthClients: Readonly<Record<'google' | 'github' | 'xAds', DeploymentClient | undefined>>;
  mcpClient: Readonly<{ kind: 'registered'; id: string } | { kind: 'metadata'; url: string }> | undefined;
  providerOrigins: ReadonlyMap<string, string>;
}>;

function client(
  values: IntegrationValues,
  idName: 'GOOGLE_CLIENT_ID' | 'GITHUB_CLIENT_ID' | 'X_ADS_CONSUMER_KEY',
  secretName: 'GOOGLE_CLIENT_SECRET' | 'GITHUB_CLIENT_SECRET' | 'X_ADS_CONSUMER_SECRET',
): DeploymentClient | undefined {
  const { [idName]: id, [secretName]: secretOf } = values;
  if (id === undefined && secretOf === undefined) return undefined;
  if (id === undefined) throw new ConfigError(`${idName}: required by ${secretName}`);
  if (secretOf === undefined) throw new ConfigError(`${secretName}: required by ${idName}`);
  return { id, secret: secretOf };
}

function mcpClient({ MCP_CLIENT_ID: id, MCP_CLIENT_METADATA_URL: url }: IntegrationValues) {
  if (id !== undefined && url !== undefined) {
    throw new ConfigError('MCP_CLIENT_METADATA_URL: set it or MCP_CLIENT_ID, not both');
  }
  if (id !== undefined) return { kind: 'registered', id } as const;
  return url === undefined ? undefined : ({ kind: 'metadata', url } as const);
}

/** @throws ConfigError */
export function integrationConfig(values: IntegrationValues, allowPrivateAddresses: boolean): IntegrationConfig {
  if (values.PROVIDER_ORIGINS !== undefined && !allowPrivateAddresses) {
    throw new ConfigError('PROVIDER_ORIGINS: only with ALLOW_PRIVATE_ADDRESSES=1, which is for tests');
  }
  return {
    encryptionKeys: values.ENCRYPTION_KEYS ?? [],
    publicUrl: values.PUBLIC_URL,
    frontendUrl: values.FRONTEND_URL,
    oauthClients: {
      google: client(values, 'GOOGLE_CLIENT_ID', 'GOOGLE_CLIENT_SECRET'),
      github: client(values, 'GITHUB_CLIENT_ID', 'GITHUB_CLIENT_SECRET'),
      xAds: client(values, 'X_ADS_CONSUMER_KEY', 'X_ADS_CONSUMER_SECRET'),
    },
    mcpClient: mcpClient(values),
    providerOrigins: values.PROVIDER_ORIGINS ?? new Map(),
  };
}
