import { settings } from '../../engine/settings.ts';

type Name = keyof typeof settings;

/** Every setting stands in one of these; `configurationPage` fails otherwise. */
const groups: readonly (readonly [title: string, names: readonly Name[], notes: string])[] = [
  [
    'Process',
    ['PORT', 'HOST', 'DATA_DIR', 'LOG_LEVEL'],
    'Logs go to standard output, one JSON object per line. `npm start` writes them to `DATA_DIR/logs` instead.',
  ],
  [
    'Database',
    ['DATABASE_URL', 'LISTEN_DATABASE_URL', 'ADMIN_DATABASE_URL', 'DATABASE_POOL_SIZE'],
    'See [deploy.md](deploy.md) for logins, poolers and migrations.',
  ],
  [
    'Files',
    [
      'STORAGE_URL',
      'AWS_REGION',
      'AWS_ENDPOINT_URL_S3',
      'AWS_ENDPOINT_URL',
      'AWS_ACCESS_KEY_ID',
      'AWS_SECRET_ACCESS_KEY',
      'AWS_SESSION_TOKEN',
    ],
    'See [storage.md](storage.md). The `AWS_…` settings count for an `s3:` storage alone.',
  ],
  [
    'Owners',
    ['OWNER_AUTH', 'OWNER_TOKENS', 'OWNER_JWKS_URL', 'OWNER_JWT_ISSUER', 'OWNER_JWT_AUDIENCE'],
    'With `open`, anyone who can reach the API may do everything, so `HOST` has to be a loopback address. Anything that others can reach needs `token` or `jwt`. Without `OWNER_AUTH`, `OWNER_TOKENS` selects `token`. See [interface.md](interface.md#51-owners) 5.1.',
  ],
  [
    'Workers, agents and administrators',
    ['AGENT_SERVICE_TOKENS', 'ADMIN_TOKENS', 'AGENT_CATALOG'],
    'A token has at least 32 printable ASCII characters. To rotate one, add the new token, move its users, remove the old one. No token of `ADMIN_TOKENS` may also be one of owners or services.',
  ],
  [
    'Probes and metrics',
    ['METRICS_TOKENS', 'METRICS_PORT', 'JOBS_PORT'],
    'Both ports listen on `HOST`. See [deploy.md](deploy.md#probes-and-metrics).',
  ],
  [
    'Runs',
    [
      'LEASE_SECONDS',
      'LEASE_CLAIM_SECONDS',
      'CANCEL_GRACE_SECONDS',
      'ACTION_APPROVAL_DAYS',
      'CHAT_START_SECONDS',
      'RUN_REQUEST_MAX_ATTEMPTS',
      'RETRY_BACKOFF_SECONDS',
      'RETRY_BACKOFF_MAX_SECONDS',
    ],
    'The API and the jobs use these: set them alike for all processes. See [interface.md](interface.md#35-run-requests-and-run-attempts) 3.5.',
  ],
  [
    'Insights',
    [
      'INSIGHT_UNITS',
      'INSIGHT_ORGANIZATION_UNITS',
      'INSIGHT_UNIT_PAGES',
      'INSIGHT_UNIT_RECORDS',
      'INSIGHT_UNIT_BYTES',
      'INSIGHT_UNIT_SECONDS',
      'INSIGHT_CYCLE_SECONDS',
      'INSIGHT_CYCLE_CLAIMS',
      'INSIGHT_COMPACTION_FILES',
      'INSIGHT_COMPACTION_BYTES',
      'INSIGHT_COMPACTION_ROWS',
      'INSIGHT_COMPACTION_SECONDS',
      'INSIGHT_KEEP_HOURS',
      'CURRENCY_RATES',
    ],
    'The jobs use these. The defaults are the limits of [interface.md](interface.md#8-limits) 8. Rates convert amounts of money into another currency; without them such a query keeps its amounts and says that a rate is missing.',
  ],
  [
    'Research',
    ['RESEARCH_LLM_URL', 'RESEARCH_LLM_MODEL', 'RESEARCH_LLM_KEY', 'RESEARCH_SECONDS', 'ALLOW_PRIVATE_ADDRESSES'],
    'See [interface.md](interface.md#107-outgoing-requests) 10.7 for what is never asked.',
  ],
  [
    'Integrations',
    [
      'ENCRYPTION_KEYS',
      'PUBLIC_URL',
      'FRONTEND_URL',
      'GOOGLE_CLIENT_ID',
      'GOOGLE_CLIENT_SECRET',
      'GITHUB_CLIENT_ID',
      'GITHUB_CLIENT_SECRET',
      'X_ADS_CONSUMER_KEY',
      'X_ADS_CONSUMER_SECRET',
      'MCP_CLIENT_ID',
      'MCP_CLIENT_METADATA_URL',
      'PROVIDER_ORIGINS',
    ],
    'Set them alike for all processes. `ENCRYPTION_KEYS` encrypts the credentials of connections: keep it apart from backups of the database, and keep it, for what it encrypted opens with nothing else. To make a key: `openssl rand -base64 32`. To rotate, see [deploy.md](deploy.md#rotating-keys).',
  ],
  [
    'Actions',
    ['RECEIPT_KEYS'],
    'For the API alone: all of its processes need the same. To make a key: `openssl rand -base64 32`. To rotate, put the new key first and leave the old ones: receipts that they signed are checked with their public keys, at `/.well-known/business-runner-keys.json`.',
  ],
  [
    'Git',
    ['GIT_MAX_PUSH_BYTES', 'GIT_MIRROR_BYTES'],
    'For the gateway of git, which runs the program `git` of its machine, and so do the jobs that execute pushes: 2.36 or newer. Both keep mirrors of repositories in `DATA_DIR/git`, which hold nothing that is not at the provider, and may be removed while no process runs.',
  ],
  ['Tests', ['VALIDATE_RESPONSES'], 'Slows every response; for tests.'],
];

function row(name: Name): string {
  const { default: value, help } = settings[name];
  return `| \`${name}\` | ${value === undefined ? '' : `\`${value}\``} | ${help} |`;
}

/** The commands that follow settings. */
const commands = [
  ...[
    'start',
    'run dev',
    'run migrate',
    'run psql',
    'run report',
    'run analyst',
    'run catalog',
    'run keys',
    'run reset',
  ],
  ...['run worker', 'run demo', 'run seed'],
].map((name) => `\`npm ${name}\``);

/** The text of docs/configuration.md. @throws Error for a setting that stands in no group, or in two */
export function configurationPage(): string {
  const grouped = groups.flatMap(([, names]) => names);
  for (const name of Object.keys(settings)) {
    const times = grouped.filter((one) => one === name).length;
    if (times !== 1) throw new Error(`${name} has to stand in one group of scripts/docs/configuration.ts`);
  }
  const sections = groups.map(
    ([title, names, notes]) =>
      `## ${title}\n\n| setting | default | |\n|---|---|---|\n${names.map(row).join('\n')}\n\n${notes}\n`,
  );
  return `# Configuration

Made from \`engine/settings.ts\` by \`npm run docs -- write\`; a test compares them.

Settings come from the environment. These also read a file \`.env\` (copy \`.env.example\`), unless \`--no-env-file\` is given; the
environment wins:
${commands.slice(0, 6).join(', ')},
${commands.slice(6).join(', ')}.
\`node scripts/run.mjs api\` and \`node scripts/run.mjs jobs\` read the environment alone.

An empty value counts as none. A wrong value ends the start with one line that names the setting, and exit code 78.
\`npm start -- --help\` prints this list.

${sections.join('\n')}`;
}
