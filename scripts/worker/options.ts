import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { LlmOptions } from './llm.ts';

export const USAGE = `npm run worker -- --exec 'COMMAND' [options]
npm run worker -- --llm URL --model NAME [--exec 'COMMAND'] [options]

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

BUSINESS_RUNNER_MODE says what the run is for. execute: do the task. plan: decide what is below an initiative.
verify: judge a result of somebody else. What stands is in $INPUT_DIR/task.json then, with what came of the tasks below,
and the files to judge are below $INPUT_DIR/outputs. The decision is written, and the worker hands it in:

  PLAN_FILE           {"operations": [{"op": "create_task", "key": "a", "title": "…", "ownerProfileKey": "…"}, …]}
  VERDICT_FILE        {"verdict": "passed" or "failed", "summary": "…", "evidence": [{"kind": "note", "text": "…"}, …]}

It answers chats too, with BUSINESS_RUNNER_MODE=chat. What COMMAND writes to its standard output is the answer, shown while
it comes; exit status 0 completes it, any other fails it:

  conversation.json   the messages up to the one that is to be answered; an attachment's path is where it lies, below
                      INPUT_DIR (null: it is not here, because all of them together are too large)
  message.txt         the message that is to be answered, as plain text
  run.json            run id, chat, profile
  RESULT_FILE         optional JSON {"parts": […], "summary": "…", "harnessSessionId": "…"}: parts take the place of the
                      output, for questions and notes; or {"kind": "failed", "code": …, "message": …, "retryable": false}
  USAGE_FILE          as for tasks

With --llm chats are answered by a model instead, through any endpoint that speaks OpenAI's chat completions, streamed;
BUSINESS_RUNNER_LLM_KEY is its key, where it wants one. It gets the texts that people attached (of long ones the beginning),
with --images their pictures too, and is told of what it does not get. Tasks are taken only with --exec.

  --url URL           the API (http://127.0.0.1:3000)
  --token TOKEN       service token; better --token-file or BUSINESS_RUNNER_SERVICE_TOKEN, which ps does not show
  --token-file FILE   file with the service token (the one that npm start made, .data/agent-service-token)
  --concurrency N     tasks at the same time (1)
  --chats N           chats at the same time, besides the tasks (4)
  --kind KIND         take only requests of this kind, task or chat
  --worker-id ID      name shown with the runs (host name and a random part)
  --organization ID   take only requests of this organization; may be given more than once
  --profile KEY       take only requests of this agent profile; may be given more than once
  --timeout SECONDS   longest time for one command or answer (3600)
  --llm URL           where chat completions are, such as http://127.0.0.1:11434/v1
  --model NAME        the model of --llm; without, what the runs say they ran on (none)
  --instructions FILE what the model of --llm is told first
  --images            the model of --llm takes images
  --silence SECONDS   longest time without a word of the model (120)
  --scratch DIR       where the folders of the runs are made (a folder in the system's temporary one)
  --keep              leave the folders of finished runs
  --once              take one request, then end: with 0 when it completed, else with 1
  --help

SIGTERM or Ctrl-C: takes nothing new and ends when the running commands have; a second time stops those as well.
`;

export type RequestKind = 'task' | 'chat';

export type WorkerOptions = Readonly<{
  /** Empty: there is none, and no tasks are taken. */
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
        chats: { type: 'string' },
        kind: { type: 'string' },
        llm: { type: 'string' },
        instructions: { type: 'string' },
        images: { type: 'boolean' },
        silence: { type: 'string' },
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

function httpUrl(name: string, text: string): string {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text))
    throw new OptionsError(`--${name}: must be an http:// or https:// URL`);
  return text.replace(/\/+$/, '');
}

function llmOptions(values: ReturnType<typeof parse>, environment: NodeJS.ProcessEnv): LlmOptions | undefined {
  const { llm, model, instructions } = values;
  if (llm === undefined) {
    const alone = (['instructions', 'images', 'silence'] as const).find((name) => values[name] !== undefined);
    if (alone) throw new OptionsError(`--${alone} belongs to --llm`);
    return undefined;
  }
  if (!model) throw new OptionsError('--model NAME is missing: which model of --llm is to answer?');
  const read = (file: string): string => {
    try {
      return readFileSync(file, 'utf8').trim();
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : 'unreadable';
      throw new OptionsError(`--instructions: ${file} is not there to be read (${code})`);
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

function timeoutMs(values: ReturnType<typeof parse>): number {
  return wholeNumber('timeout', values.timeout, 3600, 604_800) * 1000;
}

/** npm runs its scripts in the folder of the project, and says where it was called. */
function directoryOf(environment: NodeJS.ProcessEnv): string {
  return environment['INIT_CWD'] || process.cwd();
}

/** What there is something to do it with, and what was asked for. */
function requestKinds(values: ReturnType<typeof parse>, command: string): RequestKind[] {
  const able: RequestKind[] = command === '' ? ['chat'] : ['task', 'chat'];
  if (values.kind === undefined) return able;
  const kinds = able.filter((kind) => kind === values.kind);
  if (kinds.length > 0) return kinds;
  throw new OptionsError(values.kind === 'task' ? '--kind task: needs --exec' : '--kind: must be task or chat');
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
  const command = values.exec?.trim() ? values.exec : '';
  if (command === '' && (values.llm === undefined || values.exec !== undefined))
    throw new OptionsError(`--exec 'COMMAND' is missing: what is to be run for each task?`);
  const file = values['token-file'];
  const directory = directoryOf(environment);
  return {
    command: resolveProgram(command, directory),
    llm: llmOptions(values, environment),
    kinds: requestKinds(values, command),
    chats: wholeNumber('chats', values.chats, 4, 50),
    url: httpUrl('url', values.url ?? 'http://127.0.0.1:3000'),
    token: serviceToken(
      { ...(values.token === undefined ? {} : { token: values.token }), ...(file === undefined ? {} : { file }) },
      environment,
    ),
    concurrency: values.once ? 1 : wholeNumber('concurrency', values.concurrency, 1, 50),
    workerId: values['worker-id'] ?? `${hostname().slice(0, 80)}-${randomBytes(3).toString('hex')}`,
    organizationIds: values.organization,
    profileKeys: values.profile,
    timeoutMs: timeoutMs(values),
    model: values.model ?? 'none',
    scratch: path.resolve(values.scratch ?? path.join(tmpdir(), `business-runner-worker-${process.getuid?.() ?? 0}`)),
    keep: values.keep ?? false,
    once: values.once ?? false,
    environment: { ...withoutSecrets(environment), WORKER_DIR: directory },
  };
}
