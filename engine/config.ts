import { isIP } from 'node:net';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { z } from 'zod';
import { type AdminToken, sharesToken } from './admin_tokens.ts';
import { ConfigError } from './config_error.ts';
import { type IntegrationConfig, integrationConfig } from './integration_settings.ts';
import { LibpqError, withLibpq, withoutLibpq } from './libpq.ts';
import type { ReceiptKey } from './receipts/index.ts';
import type { ModelSettings } from './research/model_settings.ts';
import { settings } from './settings.ts';
import { type S3Settings, s3Location } from './storage/s3_location.ts';

export { ConfigError };

type Settings = typeof settings;
type Parsed = { [K in keyof Settings]: z.output<Settings[K]['schema']> };

export type Config = Readonly<{
  port: number;
  host: string;
  dataDir: string;
  databaseUrl: string | undefined;
  listenDatabaseUrl: string | undefined;
  adminDatabaseUrl: string | undefined;
  databasePoolSize: number;
  storageUrl: string;
  /** For a storage in S3. */
  aws: S3Settings;
  /** The tokens of `open` are for what takes one in this mode too. */
  ownerAuth:
    | { mode: 'open'; tokens: readonly string[] }
    | { mode: 'token'; tokens: readonly string[] }
    | { mode: 'jwt'; jwksUrl: string; issuer: string; audience: string };
  agentServiceTokens: readonly string[];
  adminTokens: readonly AdminToken[];
  metricsTokens: readonly string[];
  /** Undefined: none, as with the next. */
  metricsPort: number | undefined;
  jobsPort: number | undefined;
  agentCatalog: 'builtin' | 'none';
  leaseSeconds: number;
  leaseClaimSeconds: number;
  actionApprovalDays: number;
  cancelGraceSeconds: number;
  chatStartSeconds: number;
  runRequestMaxAttempts: number;
  retryBackoffSeconds: number;
  retryBackoffMaxSeconds: number;
  /** The model that summarizes research; undefined: none. */
  researchModel: ModelSettings | undefined;
  researchSeconds: number;
  allowPrivateAddresses: boolean;
  currencyRates: 'ecb' | 'off';
  /** How many files of facts are merged at once, and for how long. */
  insightCompaction: Readonly<{ files: number; bytes: number; rows: number; seconds: number }>;
  insightKeepHours: number;
  integrations: IntegrationConfig;
  /** Empty: there are no receipts. */
  receiptKeys: readonly ReceiptKey[];
  git: Readonly<{ folder: string; maxPushBytes: number; mirrorBytes: number }>;
  insights: InsightConfig;
  logLevel: z.output<Settings['LOG_LEVEL']['schema']>;
  validateResponses: boolean;
}>;

/** How facts are collected. A unit is one claim of one connector. */
export type InsightConfig = Readonly<{
  /** Units at once, of a process. */
  units: number;
  perOrganization: number;
  /** Of a unit. */
  pages: number;
  records: number;
  bytes: number;
  ms: number;
  /** Of a job. */
  cycleMs: number;
  cycleClaims: number;
}>;

/** True for the addresses that only this machine can reach. */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, '').toLowerCase();
  if (name === 'localhost' || name === '::1' || name === '::ffff:127.0.0.1') return true;
  return isIP(name) === 4 && name.startsWith('127.');
}

function parseSettings(environment: NodeJS.ProcessEnv): Parsed {
  const values: Record<string, unknown> = {};
  for (const [name, setting] of Object.entries(settings)) {
    const given = environment[name];
    const result = setting.schema.safeParse(given === undefined || given === '' ? setting.default : given);
    if (!result.success) throw new ConfigError(`${name}: ${result.error.issues[0]?.message ?? 'wrong value'}`);
    values[name] = result.data;
  }
  return values as Parsed;
}

function ownerAuth(values: Parsed): Config['ownerAuth'] {
  // Without a choice: open on the laptop, tokens as soon as there are any.
  const mode = values.OWNER_AUTH ?? (values.OWNER_TOKENS ? 'token' : 'open');
  if (mode === 'open') {
    if (!isLoopback(values.HOST)) {
      throw new ConfigError(
        `OWNER_AUTH: open is only allowed while HOST is a loopback address, and HOST is ${values.HOST}; set OWNER_AUTH=token with OWNER_TOKENS, or OWNER_AUTH=jwt`,
      );
    }
    return { mode, tokens: values.OWNER_TOKENS ?? [] };
  }
  if (mode === 'token') {
    if (!values.OWNER_TOKENS?.length) throw new ConfigError('OWNER_TOKENS: required by OWNER_AUTH=token');
    return { mode, tokens: values.OWNER_TOKENS };
  }
  for (const name of ['OWNER_JWKS_URL', 'OWNER_JWT_ISSUER', 'OWNER_JWT_AUDIENCE'] as const) {
    if (!values[name]) throw new ConfigError(`${name}: required by OWNER_AUTH=jwt`);
  }
  return {
    mode,
    jwksUrl: values.OWNER_JWKS_URL as string,
    issuer: values.OWNER_JWT_ISSUER as string,
    audience: values.OWNER_JWT_AUDIENCE as string,
  };
}

function awsSettings(values: Parsed): S3Settings {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = values;
  const credentials = accessKeyId &&
    secretAccessKey && { accessKeyId, secretAccessKey, sessionToken: values.AWS_SESSION_TOKEN };
  return {
    region: values.AWS_REGION,
    endpoint: values.AWS_ENDPOINT_URL_S3 ?? values.AWS_ENDPOINT_URL,
    credentials: credentials || undefined,
  };
}

/** Where files lie, with what it takes to reach them. The settings of AWS are read and checked for S3 alone. */
function storage(values: Parsed, dataDir: string): Pick<Config, 'storageUrl' | 'aws'> {
  const storageUrl = values.STORAGE_URL ?? defaultStorageUrl(dataDir);
  if (!storageUrl.startsWith('s3:')) return { storageUrl, aws: {} };
  for (const [name, other] of [
    ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'],
    ['AWS_SECRET_ACCESS_KEY', 'AWS_ACCESS_KEY_ID'],
  ] as const) {
    if (values[other] && !values[name]) throw new ConfigError(`${name}: required by ${other}`);
  }
  const aws = awsSettings(values);
  try {
    s3Location(storageUrl, aws);
  } catch (error) {
    throw new ConfigError((error as Error).message);
  }
  return { storageUrl, aws };
}

function researchModel(values: Parsed): ModelSettings | undefined {
  const { RESEARCH_LLM_URL: url, RESEARCH_LLM_MODEL: model, RESEARCH_LLM_KEY: key } = values;
  if (url === undefined) {
    if (model !== undefined || key !== undefined) {
      throw new ConfigError(`RESEARCH_LLM_URL: required by RESEARCH_LLM_${model === undefined ? 'KEY' : 'MODEL'}`);
    }
    return undefined;
  }
  if (model === undefined) throw new ConfigError('RESEARCH_LLM_MODEL: required by RESEARCH_LLM_URL');
  return { url, model, key };
}

function databaseUrls(values: Parsed, environment: NodeJS.ProcessEnv) {
  const complete = (url: string | undefined) => {
    try {
      return url === undefined ? undefined : withLibpq(url, environment);
    } catch (error) {
      if (error instanceof LibpqError) throw new ConfigError(error.message);
      throw error;
    }
  };
  const databaseUrl = complete(values.DATABASE_URL);
  return {
    databaseUrl,
    listenDatabaseUrl: complete(values.LISTEN_DATABASE_URL) ?? databaseUrl,
    adminDatabaseUrl: complete(values.ADMIN_DATABASE_URL) ?? databaseUrl,
  };
}

/** Where files lie when STORAGE_URL does not say. */
export function defaultStorageUrl(dataDir: string): string {
  return pathToFileURL(path.join(dataDir, 'files')).href;
}

/**
 * Reads the settings from the environment (the only place that does).
 * @throws ConfigError with one line that names the wrong setting.
 */
export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const values = parseSettings(environment);
  const dataDir = values.DATA_DIR;
  const others = [values.OWNER_TOKENS, values.AGENT_SERVICE_TOKENS].flatMap((list) => list ?? []);
  const admins = values.ADMIN_TOKENS?.map(({ token }) => token);
  if (sharesToken(admins, others)) {
    throw new ConfigError('ADMIN_TOKENS: a token is also one of OWNER_TOKENS or AGENT_SERVICE_TOKENS');
  }
  if (sharesToken(values.METRICS_TOKENS, [...others, ...(admins ?? [])])) {
    throw new ConfigError('METRICS_TOKENS: a token is also one of owners, services or administrators');
  }
  return {
    port: values.PORT,
    host: values.HOST,
    dataDir,
    ...databaseUrls(values, environment),
    databasePoolSize: values.DATABASE_POOL_SIZE,
    ...storage(values, dataDir),
    ownerAuth: ownerAuth(values),
    agentServiceTokens: values.AGENT_SERVICE_TOKENS ?? [],
    adminTokens: values.ADMIN_TOKENS ?? [],
    metricsTokens: values.METRICS_TOKENS ?? [],
    metricsPort: values.METRICS_PORT,
    jobsPort: values.JOBS_PORT,
    agentCatalog: values.AGENT_CATALOG,
    leaseSeconds: values.LEASE_SECONDS,
    leaseClaimSeconds: values.LEASE_CLAIM_SECONDS,
    actionApprovalDays: values.ACTION_APPROVAL_DAYS,
    cancelGraceSeconds: values.CANCEL_GRACE_SECONDS,
    chatStartSeconds: values.CHAT_START_SECONDS,
    runRequestMaxAttempts: values.RUN_REQUEST_MAX_ATTEMPTS,
    retryBackoffSeconds: values.RETRY_BACKOFF_SECONDS,
    retryBackoffMaxSeconds: values.RETRY_BACKOFF_MAX_SECONDS,
    researchModel: researchModel(values),
    researchSeconds: values.RESEARCH_SECONDS,
    allowPrivateAddresses: values.ALLOW_PRIVATE_ADDRESSES,
    currencyRates: values.CURRENCY_RATES,
    insightCompaction: {
      files: values.INSIGHT_COMPACTION_FILES,
      bytes: values.INSIGHT_COMPACTION_BYTES,
      rows: values.INSIGHT_COMPACTION_ROWS,
      seconds: values.INSIGHT_COMPACTION_SECONDS,
    },
    insightKeepHours: values.INSIGHT_KEEP_HOURS,
    integrations: integrationConfig(values, values.ALLOW_PRIVATE_ADDRESSES),
    receiptKeys: values.RECEIPT_KEYS ?? [],
    git: {
      folder: path.join(dataDir, 'git'),
      maxPushBytes: values.GIT_MAX_PUSH_BYTES,
      mirrorBytes: values.GIT_MIRROR_BYTES,
    },
    insights: {
      units: values.INSIGHT_UNITS,
      perOrganization: values.INSIGHT_ORGANIZATION_UNITS,
      pages: values.INSIGHT_UNIT_PAGES,
      records: values.INSIGHT_UNIT_RECORDS,
      bytes: values.INSIGHT_UNIT_BYTES,
      ms: values.INSIGHT_UNIT_SECONDS * 1_000,
      cycleMs: values.INSIGHT_CYCLE_SECONDS * 1_000,
      cycleClaims: values.INSIGHT_CYCLE_CLAIMS,
    },
    logLevel: values.LOG_LEVEL,
    validateResponses: values.VALIDATE_RESPONSES,
  };
}

/** The environment for a child process: ours, with these settings in place of our own. */
export function environmentWith(values: { readonly [K in keyof Settings]?: string | undefined }): NodeJS.ProcessEnv {
  return { ...process.env, ...values };
}

/** What a program needs that is to see nothing else of our environment. */
export function environmentOfPrograms(): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin' };
}

/** Our environment without what libpq takes from it. */
export function environmentWithoutLibpq(): NodeJS.ProcessEnv {
  return withoutLibpq(process.env);
}

/** Takes out of our environment what libpq and the driver take from it: it is meant for other databases than an embedded one. */
export function forgetLibpq(): void {
  const kept = withoutLibpq(process.env);
  for (const name of Object.keys(process.env)) if (!(name in kept)) delete process.env[name];
}

/** PostGraphile asks for this before it is loaded, and complains where nobody responds. */
export function loadGraphileForProduction(): void {
  process.env['GRAPHILE_ENV'] ??= 'production';
}
