import { z } from 'zod';
import { compactionSettings } from './compaction_settings.ts';
import { integrationSettings } from './integration_settings.ts';
import { receiptKeys } from './receipts/index.ts';
import { adminTokens, folder, httpUrl, integer, postgresUrl, storageUrl, tokens } from './setting_values.ts';

/** One row a setting: `--help`, `.env.example` and docs/configuration.md follow from it. */
export const settings = {
  PORT: { schema: integer(0, 65_535), default: '3000', help: 'TCP port of the API; 0 takes a free one' },
  HOST: { schema: z.string().min(1), default: '127.0.0.1', help: 'address the API listens on' },
  DATA_DIR: { schema: folder, default: '.data', help: 'folder of the embedded database, tokens and files' },
  DATABASE_URL: {
    schema: postgresUrl.optional(),
    default: undefined,
    help: 'Postgres 15 or newer; without it npm start runs an embedded Postgres',
  },
  LISTEN_DATABASE_URL: {
    schema: postgresUrl.optional(),
    default: undefined,
    help: 'direct connection for LISTEN, where DATABASE_URL goes through a transaction pooler',
  },
  ADMIN_DATABASE_URL: {
    schema: postgresUrl.optional(),
    default: undefined,
    help: 'connection of the administration, where the user of DATABASE_URL may not become runner_admin',
  },
  DATABASE_POOL_SIZE: { schema: integer(1, 500), default: '16', help: 'connections of one process' },
  STORAGE_URL: {
    schema: storageUrl.optional(),
    default: undefined,
    help: 'where files are kept: file:///path or s3://bucket/prefix (default: the folder files in DATA_DIR)',
  },
  AWS_REGION: {
    schema: z.string().min(1).optional(),
    default: undefined,
    help: 'region of an s3 STORAGE_URL; not needed with an endpoint',
  },
  AWS_ENDPOINT_URL_S3: {
    schema: z.url().optional(),
    default: undefined,
    help: 'where an s3 STORAGE_URL is served, if not by AWS; else AWS_ENDPOINT_URL',
  },
  AWS_ENDPOINT_URL: { schema: z.url().optional(), default: undefined, help: 'the same, for all services' },
  AWS_ACCESS_KEY_ID: {
    schema: z.string().min(1).optional(),
    default: undefined,
    help: 'credentials of an s3 STORAGE_URL; without them those of the AWS profile, the container or the machine',
  },
  AWS_SECRET_ACCESS_KEY: {
    schema: z.string().min(1).optional(),
    default: undefined,
    help: 'the secret that belongs to AWS_ACCESS_KEY_ID',
  },
  AWS_SESSION_TOKEN: {
    schema: z.string().min(1).optional(),
    default: undefined,
    help: 'the token of temporary credentials',
  },
  OWNER_AUTH: {
    schema: z.enum(['open', 'token', 'jwt'], 'must be open, token or jwt').optional(),
    default: undefined,
    help: 'open (loopback only; the default of the embedded start), token or jwt',
  },
  OWNER_TOKENS: {
    schema: tokens.optional(),
    default: undefined,
    help: 'comma-separated bearer tokens of OWNER_AUTH=token; with open, for what decides about agents alone, and npm start makes one',
  },
  OWNER_JWKS_URL: { schema: z.url().optional(), default: undefined, help: 'key set of OWNER_AUTH=jwt' },
  OWNER_JWT_ISSUER: {
    schema: z.string().min(1).optional(),
    default: undefined,
    help: 'required issuer of OWNER_AUTH=jwt',
  },
  OWNER_JWT_AUDIENCE: {
    schema: z.string().min(1).optional(),
    default: undefined,
    help: 'required audience of OWNER_AUTH=jwt',
  },
  AGENT_SERVICE_TOKENS: {
    schema: tokens.optional(),
    default: undefined,
    help: 'comma-separated bearer tokens of workers and agent runtimes; npm start makes one when none is set',
  },
  ADMIN_TOKENS: {
    schema: adminTokens.optional(),
    default: undefined,
    help: 'comma-separated tokens of administrators, each as name:token; npm start makes one when none is set',
  },
  METRICS_TOKENS: {
    schema: tokens.optional(),
    default: undefined,
    help: 'comma-separated tokens of who reads /metrics; without any, it responds on loopback and at ports of its own',
  },
  METRICS_PORT: {
    schema: integer(0, 65_535).optional(),
    default: undefined,
    help: 'a further TCP port of the API, for /metrics and /healthz alone',
  },
  JOBS_PORT: {
    schema: integer(0, 65_535).optional(),
    default: undefined,
    help: 'TCP port of the jobs, for /healthz, /readyz and /metrics; none without it; npm start takes a free one',
  },
  AGENT_CATALOG: {
    schema: z.enum(['builtin', 'none'], 'must be builtin or none'),
    default: 'builtin',
    help: 'builtin publishes the shipped profile templates when none are published; none publishes nothing',
  },
  LEASE_SECONDS: { schema: integer(1, 3_600), default: '60', help: 'how long a run lease lasts without a heartbeat' },
  LEASE_CLAIM_SECONDS: {
    schema: integer(1, 3_600),
    default: '30',
    help: 'how long a pulled request waits for its start',
  },
  ACTION_APPROVAL_DAYS: {
    schema: integer(1, 365),
    default: '7',
    help: 'an action that nobody has approved or rejected by then expires',
  },
  INSIGHT_UNITS: {
    schema: integer(0, 64),
    default: '4',
    help: 'units of collecting at once, of one jobs process; 0: it collects nothing',
  },
  INSIGHT_ORGANIZATION_UNITS: {
    schema: integer(1, 64),
    default: '2',
    help: 'the same, of one organization, over all processes',
  },
  INSIGHT_UNIT_PAGES: { schema: integer(1, 1_000), default: '20', help: 'requests of one unit of collecting' },
  INSIGHT_UNIT_RECORDS: { schema: integer(1, 100_000), default: '10000', help: 'records of one unit' },
  INSIGHT_UNIT_BYTES: {
    schema: integer(65_536, 268_435_456),
    default: '33554432',
    help: 'bytes of the responses of one unit',
  },
  INSIGHT_UNIT_SECONDS: { schema: integer(1, 60), default: '30', help: 'a unit asks for nothing more after this' },
  INSIGHT_CYCLE_SECONDS: {
    schema: integer(1, 600),
    default: '45',
    help: 'a job of collecting goes on with what its units have left, so long',
  },
  INSIGHT_CYCLE_CLAIMS: { schema: integer(1, 1_000), default: '64', help: 'or so many units' },
  CANCEL_GRACE_SECONDS: {
    schema: integer(0, 3_600),
    default: '300',
    help: 'how long after a cancel heartbeats still renew the lease of a run, so that it can stop and report',
  },
  CHAT_START_SECONDS: {
    schema: integer(1, 86_400),
    default: '300',
    help: 'how long a chat message waits for a runtime before its reply fails',
  },
  RUN_REQUEST_MAX_ATTEMPTS: {
    schema: integer(1, 100),
    default: '3',
    help: 'starts of one run request before its task fails',
  },
  RETRY_BACKOFF_SECONDS: {
    schema: integer(1, 3_600),
    default: '1',
    help: 'first backoff after a failed run; doubles each attempt',
  },
  RETRY_BACKOFF_MAX_SECONDS: { schema: integer(1, 86_400), default: '300', help: 'longest backoff after a failed run' },
  RESEARCH_LLM_URL: {
    schema: httpUrl.optional(),
    default: undefined,
    help: 'OpenAI-compatible endpoint that summarizes what research found, e.g. https://host/v1; without it none is asked',
  },
  RESEARCH_LLM_MODEL: {
    schema: z.string().min(1).optional(),
    default: undefined,
    help: 'name of the model at RESEARCH_LLM_URL',
  },
  RESEARCH_LLM_KEY: {
    schema: z
      .string()
      .regex(/^[\x21-\x7e]+$/, 'keys are printable ASCII without spaces')
      .optional(),
    default: undefined,
    help: 'bearer key of RESEARCH_LLM_URL',
  },
  RESEARCH_SECONDS: { schema: integer(1, 3_600), default: '300', help: 'how long one attempt at research may take' },
  ...integrationSettings,
  RECEIPT_KEYS: {
    schema: receiptKeys.optional(),
    default: undefined,
    help: 'base64,…: 32 bytes each; the first one signs receipts of actions, the public keys of all are published; npm start makes one when none is set',
  },
  GIT_MAX_PUSH_BYTES: {
    schema: integer(1, 10_737_418_240),
    default: '536870912',
    help: 'longest push that the gateway of git takes, in bytes',
  },
  GIT_MIRROR_BYTES: {
    schema: integer(1, 999_999_999_999),
    default: '10737418240',
    help: 'what the mirrors of repositories in DATA_DIR/git may take, in bytes; the longest unused go first',
  },
  CURRENCY_RATES: {
    schema: z.enum(['ecb', 'off'], 'must be ecb or off'),
    default: 'ecb',
    help: 'ecb reads the reference rates of the European Central Bank each working day; off asks nobody, for networks without the internet',
  },
  ...compactionSettings,
  ALLOW_PRIVATE_ADDRESSES: {
    schema: z.enum(['0', '1'], 'must be 0 or 1').transform((text) => text === '1'),
    default: '0',
    help: '1 lets websites and other addresses of users lie in private networks (tests)',
  },
  LOG_LEVEL: {
    schema: z.enum(
      ['fatal', 'error', 'warn', 'info', 'debug', 'silent'],
      'must be fatal, error, warn, info, debug or silent',
    ),
    default: 'info',
    help: 'fatal, error, warn, info, debug or silent',
  },
  VALIDATE_RESPONSES: {
    schema: z.enum(['0', '1'], 'must be 0 or 1').transform((text) => text === '1'),
    default: '0',
    help: '1 checks every response against its OpenAPI schema (tests)',
  },
} as const;
