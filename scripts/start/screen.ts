import path from 'node:path';
import { type Config, defaultStorageUrl } from '../../engine/config.ts';
import { storagePlace } from '../../engine/storage/index.ts';
import { dataFolder, TOKEN_FILE } from '../worker/local_data.ts';
import { localUrl } from '../worker/local_url.ts';
import type { Database } from './database.ts';

/** A path as a person types it: relative where that is shorter. */
function displayPath(file: string): string {
  const relative = path.relative(process.cwd(), file);
  return relative !== '' && relative.length < file.length ? relative : file;
}

/** Who may act as an owner, and how. */
function ownerRows({ ownerAuth: { mode } }: Config, tokenFile: string | undefined): [string, string][] {
  if (mode === 'token') return [['Owners', 'with a token of OWNER_TOKENS']];
  if (mode === 'jwt') return [['Owners', 'with a JWT of OWNER_JWT_ISSUER']];
  return [
    ['Owners', 'open: anybody on this machine, without a token (OWNER_AUTH)'],
    [
      '',
      `what agents may do outside: with ${tokenFile ? `the token in ${displayPath(tokenFile)}` : 'a token of OWNER_TOKENS'}`,
    ],
  ];
}

export type Screen = Readonly<{
  config: Config;
  url: string;
  /** Where the jobs serve their probes. */
  jobsUrl: string;
  database: Database;
  /** Undefined when AGENT_SERVICE_TOKENS is set. */
  tokenFile: string | undefined;
  /** Undefined when OWNER_TOKENS is set, or OWNER_AUTH is not open. */
  ownerTokenFile: string | undefined;
  /** Undefined when ADMIN_TOKENS is set. */
  adminTokenFile: string | undefined;
  /** Undefined when ENCRYPTION_KEYS is set. */
  encryptionKeysFile: string | undefined;
  organizationId: string;
  /** Those in `.env`, where the commands in another terminal look for what is not given to them. */
  settings: NodeJS.ProcessEnv;
  /** Why files cannot be stored now; undefined: they can. */
  storageProblem: string | undefined;
}>;

/** Where files are stored, unless in the data folder. */
function filesRow({ storageUrl, aws, dataDir }: Config): [string, string][] {
  if (storageUrl === defaultStorageUrl(dataDir)) return [];
  return [['Files', `${storagePlace(storageUrl, aws)} (STORAGE_URL)`]];
}

/** What a person sees when everything is ready. It names the files of secrets, never a secret. */
export function screen(options: Screen): string {
  const { config, url, jobsUrl, database, tokenFile, adminTokenFile, encryptionKeysFile } = options;
  const { organizationId, ownerTokenFile, settings, storageProblem } = options;
  const mode = config.ownerAuth.mode;
  const authorization = mode === 'open' ? '' : ' -H "Authorization: Bearer $BUSINESS_RUNNER_OWNER_TOKEN"';
  const owner = mode === 'open' ? '' : 'BUSINESS_RUNNER_OWNER_TOKEN=… ';
  const service = tokenFile ? '' : 'BUSINESS_RUNNER_SERVICE_TOKEN=… ';
  const there = settings['BUSINESS_RUNNER_URL'] || url !== localUrl(settings) ? ` --url ${url}` : '';
  const isFound = tokenFile === undefined || tokenFile === path.join(dataFolder(settings), TOKEN_FILE);
  const extraOptions = there + (isFound ? '' : ` --token-file ${displayPath(tokenFile)}`);
  const rows = [
    ['API', url],
    ['Documentation', `${url}/docs`],
    ...ownerRows(config, ownerTokenFile),
    ['Workers', tokenFile ? `with the token in ${displayPath(tokenFile)}` : 'with a token of AGENT_SERVICE_TOKENS'],
    [
      'Administration',
      `${url}/internal/admin ${adminTokenFile ? `with the token in ${displayPath(adminTokenFile)}` : 'with a token of ADMIN_TOKENS'}`,
    ],
    ['Health', `${url}/readyz and ${jobsUrl}/readyz (jobs); /metrics on both`],
    ['Data', config.dataDir],
    ['Database', database.summary],
    [
      'Credentials',
      encryptionKeysFile
        ? `encrypted with the key in ${displayPath(encryptionKeysFile)}: keep a copy`
        : 'encrypted with ENCRYPTION_KEYS',
    ],
    ...filesRow(config),
    ['Logs', displayPath(path.join(config.dataDir, 'logs'))],
    ...database.notes.map((note) => ['Note', note]),
    ...(storageProblem === undefined ? [] : [['Note', `files cannot be stored now: ${storageProblem}`]]),
  ];
  const command = `${owner}npx business-runner`;
  return `
Business Runner is ready.

${rows.map(([name = '', value]) => `  ${name.padEnd(14)} ${value}`).join('\n')}

Try next, in another terminal:

  ${command} org create Acme${there}
  ${command} task create "Write a haiku for the team" --wait${there}
      an organization with agents, and a task that waits for a worker

  ${service}npm run worker -- --exec ./examples/agents/agent.sh${extraOptions}
      the worker, in a third terminal: it runs your command for every task

  ${owner}${service}npm run demo${extraOptions && ` --${extraOptions}`}
      a demo organization: watch a worker finish two tasks

  curl${authorization} -H 'Content-Type: application/json' \\
    ${url}/organizations/${organizationId} \\
    -d '{"slug": "acme-2", "name": "Acme", "provision": true}'
      an organization by HTTP; ${url}/docs shows every call

Ctrl-C stops everything.
`;
}
