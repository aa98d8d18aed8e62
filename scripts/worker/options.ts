import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

export const USAGE = `npm run worker -- --exec 'COMMAND' [options]

Takes run requests of tasks from Business Runner and runs COMMAND (by /bin/sh) for each, in a folder of its own:

  TASK.md             the task for a reader          INPUT_DIR      its input files
  task.json           the task as the API shows it   OUTPUT_DIR     every file below it is handed in
  run.json            run id, attempt, profile       PROGRESS_FILE  a line appended here is a line in the run's log
  BUSINESS_RUNNER_URL, BUSINESS_RUNNER_TOKEN         the API, and a token for this one run
  RESULT_FILE         optional JSON {"summary": "…"}, or another end: {"kind": "waiting", "until": …, "reason": …},
                      {"kind": "needs_input", "question": …, "options": […]},
                      {"kind": "failed", "code": …, "message": …, "retryable": false}
  WORKER_DIR          the folder in which the worker was started: --exec 'node "$WORKER_DIR/agent.mjs"';
                      a COMMAND that begins with ./ or ../ is looked for there too
  USAGE_FILE          optional JSON {"inputTokens": 1, "outputTokens": 2, "toolCalls": 3, "costMinorUnits": 4}

Exit status 0 completes the run with the files as its artifacts; any other fails it, and it is tried again.

  --url URL           the API (http://127.0.0.1:3000)
  --token TOKEN       service token; better --token-file or BUSINESS_RUNNER_SERVICE_TOKEN, which ps does not show
  --token-file FILE   file with the service token (the one that npm start made, .data/agent-service-token)
  --concurrency N     runs at the same time (1)
  --worker-id ID      name shown with the runs (host name and a random part)
  --organization ID   take only requests of this organization; may be given more than once
  --profile KEY       take only requests of this agent profile; may be given more than once
  --timeout SECONDS   longest time for one command (3600)
  --model NAME        what the runs say they ran on (none)
  --scratch DIR       where the folders of the runs are made (a folder in the system's temporary one)
  --keep              leave the folders of finished runs
  --once              take one request, then end: with 0 when it completed, else with 1
  --help

SIGTERM or Ctrl-C: takes nothing new and ends when the running commands have; a second time stops those as well.
`;

export type WorkerOptions = Readonly<{
  command: string;
  url: string;
  token: string;
  concurrency: number;
  workerId: string;
  organizationIds: readonly string[] | undefined;
  profileKeys: readonly string[] | undefined;
  timeoutMs: number;
  model: string;
  scratch: string;
  keep: boolean;
  once: boolean;
  /** What commands inherit: the environment without the secrets of this process. */
  environment: NodeJS.ProcessEnv;
}>;

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Commands run in the folder of their run; a program that is named by a relative path is the one that the person sees. */
function resolveProgram(command: string, directory: string): string {
  return command.replace(/^\s*(\.{1,2}\/\S+)/, (_match, program: string) => quoted(path.resolve(directory, program)));
}

/** What is wrong with the command line, in one line. */
export class OptionsError extends Error {
  override name = 'OptionsError';
}

const SECRETS = [
  'BUSINESS_RUNNER_SERVICE_TOKEN',
  'BUSINESS_RUNNER_OWNER_TOKEN',
  'AGENT_SERVICE_TOKENS',
  'OWNER_TOKENS',
  'DATABASE_URL',
  'LISTEN_DATABASE_URL',
];

function withoutSecrets(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !SECRETS.includes(name)));
}

function wholeNumber(name: string, text: string | undefined, fallback: number, maximum: number): number {
  if (text === undefined) return fallback;
  const value = Number(text);
  if (!/^\d{1,9}$/.test(text) || value < 1 || value > maximum) {
    throw new OptionsError(`--${name}: must be a whole number from 1 to ${maximum}`);
  }
  return value;
}

function asToken(text: string, from: string): string {
  if (/^[\x21-\x7e]+$/.test(text)) return text;
  throw new OptionsError(`no service token: ${from} is empty or has characters that no token has`);
}

function serviceToken(given: { token?: string; file?: string }, environment: NodeJS.ProcessEnv): string {
  const direct = given.token ?? (given.file === undefined ? environment['BUSINESS_RUNNER_SERVICE_TOKEN'] : undefined);
  if (direct) return asToken(direct, 'the service token');
  const file = given.file ?? path.resolve(environment['DATA_DIR'] || '.data', 'agent-service-token');
  try {
    const token = readFileSync(file, 'utf8').trim();
    return asToken(token, file);
  } catch (error) {
    if (error instanceof OptionsError) throw error;
    const code = error instanceof Error && 'code' in error ? error.code : 'unreadable';
    throw new OptionsError(
      `no service token: ${file} is not there to be read (${code}). Run npm start first, or give --token-file or BUSINESS_RUNNER_SERVICE_TOKEN.`,
    );
  }
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      options: {
        exec: { type: 'string' },
        url: { type: 'string' },
        token: { type: 'string' },
        'token-file': { type: 'string' },
        concurrency: { type: 'string' },
        'worker-id': { type: 'string' },
        organization: { type: 'string', multiple: true },
        profile: { type: 'string', multiple: true },
        timeout: { type: 'string' },
        model: { type: 'string' },
        scratch: { type: 'string' },
        keep: { type: 'boolean' },
        once: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    throw new OptionsError(error instanceof Error ? error.message : String(error));
  }
}

/** The bearer token of an owner, for scripts that act as one where OWNER_AUTH is not open. */
export function ownerToken(environment: NodeJS.ProcessEnv = process.env): string | undefined {
  return environment['BUSINESS_RUNNER_OWNER_TOKEN'] || undefined;
}

/**
 * Reads the command line and, here alone, the environment. Null: --help was asked for.
 * @throws OptionsError
 */
export function readOptions(
  argv: readonly string[],
  environment: NodeJS.ProcessEnv = process.env,
): WorkerOptions | null {
  const values = parse(argv);
  if (values.help) return null;
  if (!values.exec?.trim()) throw new OptionsError(`--exec 'COMMAND' is missing: what is to be run for each task?`);
  const url = values.url ?? 'http://127.0.0.1:3000';
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw new OptionsError('--url: must be an http:// or https:// URL');
  const file = values['token-file'];
  // npm runs its scripts in the folder of the project, and says where it was called.
  const directory = environment['INIT_CWD'] || process.cwd();
  return {
    command: resolveProgram(values.exec, directory),
    url: url.replace(/\/+$/, ''),
    token: serviceToken(
      { ...(values.token === undefined ? {} : { token: values.token }), ...(file === undefined ? {} : { file }) },
      environment,
    ),
    concurrency: values.once ? 1 : wholeNumber('concurrency', values.concurrency, 1, 50),
    workerId: values['worker-id'] ?? `${hostname().slice(0, 80)}-${randomBytes(3).toString('hex')}`,
    organizationIds: values.organization,
    profileKeys: values.profile,
    timeoutMs: wholeNumber('timeout', values.timeout, 3600, 604_800) * 1000,
    model: values.model ?? 'none',
    scratch: path.resolve(values.scratch ?? path.join(tmpdir(), `business-runner-worker-${process.getuid?.() ?? 0}`)),
    keep: values.keep ?? false,
    once: values.once ?? false,
    environment: { ...withoutSecrets(environment), WORKER_DIR: directory },
  };
}
