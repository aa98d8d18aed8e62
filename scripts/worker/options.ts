import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { dataFolder, TOKEN_FILE } from './local_data.ts';
import { localUrl } from './local_url.ts';
import { resolveProgram } from './program.ts';

export const USAGE = `npm run worker -- --exec 'COMMAND' [options]
npm run worker -- --llm URL --model NAME [--exec 'COMMAND'] [options]

Pulls run requests of tasks from Business Runner and runs COMMAND (by /bin/sh) for each, in a folder of its own:

  TASK.md             the task as a text to read     INPUT_DIR      its input files
  task.json           the task as the API shows it   OUTPUT_DIR     every file in it is uploaded as an output
  run.json            run id, attempt, profile       PROGRESS_FILE  each line appended here is a line in the run's log
  BUSINESS_RUNNER_URL, BUSINESS_RUNNER_TOKEN         the API, and a token for this one run
  BUSINESS_RUNNER_ORGANIZATION, BUSINESS_RUNNER_RUN  ids, of the organization and the run
  business-runner     is on the PATH: tools of integrations, actions, git, an MCP server (business-runner call --help)
  RESULT_FILE         optional JSON {"summary": "…"}, or another end: {"kind": "waiting", "until": …, "reason": …},
                      the same with "actionIds": […] in place of "until": when these actions of the task are over,
                      {"kind": "needs_input", "question": …, "options": […]},
                      {"kind": "failed", "code": …, "message": …, "retryable": false}
  WORKER_DIR          the folder in which the worker was started. A COMMAND that begins with ./ or ../ is resolved there,
                      and so is the script of 'node agent.mjs', 'python3 agent.py' or 'bash agent.sh'
  USAGE_FILE          optional JSON {"inputTokens": 1, "outputTokens": 2, "toolCalls": 3, "costMinorUnits": 4}

Exit status 0 completes the run with the uploaded files as its artifacts. Any other fails the run, and the task is retried; the end
of the standard error is in the run's error. 126 and 127 of the first start end the worker: COMMAND is not there.

BUSINESS_RUNNER_MODE is the mode of the run. execute: do the task. plan: plan the subtasks of an initiative. verify: check
the result of another agent. In the last two, $INPUT_DIR/task.json holds the current state with the results of the subtasks,
and $INPUT_DIR/outputs the files to verify. COMMAND writes its decision, and the worker submits it:

  PLAN_FILE           {"operations": [{"op": "create_task", "key": "a", "title": "…", "ownerProfileKey": "…"}, …]}
  VERDICT_FILE        {"verdict": "passed" or "failed", "summary": "…", "evidence": [{"kind": "note", "text": "…"}, …]}

COMMAND also replies in chats, with BUSINESS_RUNNER_MODE=chat. Its standard output is the reply, streamed while it is written;
exit status 0 completes the reply, any other fails it:

  conversation.json   the messages up to the one to reply to; the path of an attachment is below INPUT_DIR
                      (null: not downloaded, because all attachments together are too large)
  message.txt         the message to reply to, as plain text
  run.json            run id, chat, profile
  RESULT_FILE         optional JSON {"parts": […], "summary": "…", "harnessSessionId": "…"}: parts replace the output,
                      for questions and notes; or {"kind": "failed", "code": …, "message": …, "retryable": false}
  USAGE_FILE          as for tasks

With --llm a model replies in chats instead, through any endpoint that speaks OpenAI's streamed chat completions, with the key
in BUSINESS_RUNNER_LLM_KEY if it needs one. The model gets attached texts (the beginning of long ones), images with --images,
and a note about each file that it does not get. Without --exec no tasks are pulled.

  --url URL           the API (http://127.0.0.1:3000, or HOST and PORT as npm start reads them)
  --token TOKEN       service token; better --token-file or BUSINESS_RUNNER_SERVICE_TOKEN, which ps does not show
  --token-file FILE   file with the service token (.data/agent-service-token, made by npm start)
  --concurrency N     tasks at the same time (1)
  --chats N           chats at the same time, besides the tasks (4)
  --kind KIND         pull only requests of this kind, task or chat
  --worker-id ID      name shown with the runs (host name and a random part)
  --organization ID   pull only requests of this organization; repeatable; --org is short for it
  --profile KEY       pull only requests of this agent profile; repeatable
  --timeout SECONDS   longest time for one command or reply (3600)
  --llm URL           base URL of the chat completions, such as http://127.0.0.1:11434/v1
  --model NAME        the model of --llm; without --llm, the model that the runs report (none)
  --instructions FILE system prompt for the model of --llm
  --images            the model of --llm accepts images
  --silence SECONDS   longest wait for the next piece of a reply of the model (120)
  --scratch DIR       parent folder of the runs' folders (a folder in the system's temporary one)
  --keep              keep the folders of finished runs
  --no-env-file       does not read the settings in .env
  --once              take one request, then exit: with 0 if it completed, else with 1
  --help

SIGTERM or Ctrl-C: pulls nothing new and exits when the running commands have finished; a second time stops them.
`;

export type LlmOptions = Readonly<{
  /** The base URL: requests go to `<url>/chat/completions`. */
  url: string;
  model: string;
  /** Sent as a bearer token, where there is one. */
  key: string | undefined;
  /** Replaces the default system prompt. */
  instructions: string | undefined;
  /** Whether the model accepts images. */
  images: boolean;
  /** The longest silence before the reply and between its pieces. */
  silenceMs: number;
  /** The longest time for a reply. */
  timeoutMs: number;
}>;

export type RequestKind = 'task' | 'chat';

export type WorkerOptions = Readonly<{
  /** Empty: no tasks are pulled. */
  command: string;
  llm: LlmOptions | undefined;
  kinds: readonly RequestKind[];
  chats: number;
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
  /** The environment of commands: that of the worker without its secrets. */
  environment: NodeJS.ProcessEnv;
}>;

/** The command line is wrong; the message is one line. */
export class OptionsError extends Error {
  override name = 'OptionsError';
}

const SECRETS = [
  'BUSINESS_RUNNER_SERVICE_TOKEN',
  'BUSINESS_RUNNER_OWNER_TOKEN',
  'BUSINESS_RUNNER_LLM_KEY',
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
  const file = given.file ?? path.join(dataFolder(environment), TOKEN_FILE);
  try {
    const token = readFileSync(file, 'utf8').trim();
    return asToken(token, file);
  } catch (error) {
    if (error instanceof OptionsError) throw error;
    const code = error instanceof Error && 'code' in error ? error.code : 'unreadable';
    throw new OptionsError(
      `no service token: ${file} cannot be read (${code}). Run npm start first, or set --token-file or BUSINESS_RUNNER_SERVICE_TOKEN.`,
    );
  }
}

function parse(argv: readonly string[], environment: NodeJS.ProcessEnv) {
  try {
    return parseArgs({
      args: [...argv],
      options: {
        exec: { type: 'string' },
        url: { type: 'string' },
        token: { type: 'string' },
        'token-file': { type: 'string' },
        concurrency: { type: 'string' },
        chats: { type: 'string' },
        kind: { type: 'string' },
        llm: { type: 'string' },
        instructions: { type: 'string' },
        images: { type: 'boolean' },
        silence: { type: 'string' },
        'worker-id': { type: 'string' },
        organization: { type: 'string', multiple: true },
        org: { type: 'string', multiple: true },
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
    const message = error instanceof Error ? error.message : String(error);
    throw new OptionsError(`${message.split('. ')[0]} (npm run worker -- --help)${eatenByNpm(environment)}`);
  }
}

/** The bearer token of an owner, for scripts that act as one where OWNER_AUTH is not open. */
export function ownerToken(environment: NodeJS.ProcessEnv = process.env): string | undefined {
  return environment['BUSINESS_RUNNER_OWNER_TOKEN'] || undefined;
}

function httpUrl(name: string, text: string): string {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text))
    throw new OptionsError(`--${name}: must be an http:// or https:// URL`);
  return text.replace(/(?<!\/)\/+$/, '');
}

function llmOptions(values: ReturnType<typeof parse>, environment: NodeJS.ProcessEnv): LlmOptions | undefined {
  const { llm, model, instructions } = values;
  if (llm === undefined) {
    const alone = (['instructions', 'images', 'silence'] as const).find((name) => values[name] !== undefined);
    if (alone) throw new OptionsError(`--${alone} needs --llm`);
    return undefined;
  }
  if (!model) throw new OptionsError('--model NAME is missing: which model of --llm replies?');
  const read = (file: string): string => {
    try {
      return readFileSync(file, 'utf8').trim();
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : 'unreadable';
      throw new OptionsError(`--instructions: ${file} cannot be read (${code})`);
    }
  };
  return {
    url: httpUrl('llm', llm),
    model,
    key: environment['BUSINESS_RUNNER_LLM_KEY'] || undefined,
    instructions: instructions === undefined ? undefined : read(path.resolve(directoryOf(environment), instructions)),
    images: values.images ?? false,
    silenceMs: wholeNumber('silence', values.silence, 120, 300) * 1000,
    timeoutMs: timeoutMs(values),
  };
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A worker cannot look slugs up: its token reads no organizations. */
function organizationIds(given: readonly string[]): readonly string[] | undefined {
  const other = given.find((id) => !UUID.test(id));
  if (other === undefined) return given.length === 0 ? undefined : given;
  throw new OptionsError(`--organization takes ids, not ${JSON.stringify(other)}: npx business-runner org list`);
}

function timeoutMs(values: ReturnType<typeof parse>): number {
  return wholeNumber('timeout', values.timeout, 3600, 604_800) * 1000;
}

/** npm runs scripts in the project's folder; INIT_CWD is where it was called. */
function directoryOf(environment: NodeJS.ProcessEnv): string {
  return environment['INIT_CWD'] || process.cwd();
}

/** Options before a `--` go to npm, which keeps those it does not know. */
function eatenByNpm(environment: NodeJS.ProcessEnv): string {
  return environment['npm_config_exec'] === undefined ? '' : ': options follow a --, as in npm run worker -- --exec …';
}

/** The kinds that this worker can do, narrowed by --kind. */
function requestKinds(values: ReturnType<typeof parse>, command: string): RequestKind[] {
  const able: RequestKind[] = command === '' ? ['chat'] : ['task', 'chat'];
  if (values.kind === undefined) return able;
  const kinds = able.filter((kind) => kind === values.kind);
  if (kinds.length > 0) return kinds;
  throw new OptionsError(values.kind === 'task' ? '--kind task: needs --exec' : '--kind: must be task or chat');
}

/**
 * Reads the command line and the environment; no other file of the worker reads the environment. Null: --help. `settings` are
 * those of `.env`: the environment wins, and commands do not get them.
 * @throws OptionsError
 */
export function readOptions(
  argv: readonly string[],
  environment: NodeJS.ProcessEnv = process.env,
  settings: NodeJS.ProcessEnv = {},
): WorkerOptions | null {
  const given = { ...settings, ...environment };
  const values = parse(argv, environment);
  if (values.help) return null;
  const command = values.exec?.trim() ? values.exec : '';
  if (command === '' && (values.llm === undefined || values.exec !== undefined))
    throw new OptionsError(`--exec 'COMMAND' is missing${eatenByNpm(environment) || ': what runs for each task?'}`);
  const file = values['token-file'];
  const directory = directoryOf(environment);
  return {
    command: resolveProgram(command, directory),
    llm: llmOptions(values, given),
    kinds: requestKinds(values, command),
    chats: wholeNumber('chats', values.chats, 4, 50),
    url: httpUrl('url', values.url ?? localUrl(given)),
    token: serviceToken(
      { ...(values.token === undefined ? {} : { token: values.token }), ...(file === undefined ? {} : { file }) },
      given,
    ),
    concurrency: values.once ? 1 : wholeNumber('concurrency', values.concurrency, 1, 50),
    workerId: values['worker-id'] ?? `${hostname().slice(0, 80)}-${randomBytes(3).toString('hex')}`,
    organizationIds: organizationIds([...(values.organization ?? []), ...(values.org ?? [])]),
    profileKeys: values.profile,
    timeoutMs: timeoutMs(values),
    model: values.model ?? 'none',
    scratch: path.resolve(values.scratch ?? path.join(tmpdir(), `business-runner-worker-${process.getuid?.() ?? 0}`)),
    keep: values.keep ?? false,
    once: values.once ?? false,
    environment: { ...withoutSecrets(environment), WORKER_DIR: directory },
  };
}
