import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { nearest } from '../nearest.ts';
import { localOwnerToken } from '../owner_token.ts';
import { localUrl } from '../worker/local_url.ts';
import { CommandError, EXIT, usageError } from './errors.ts';

const options = {
  objective: { type: 'string' },
  expect: { type: 'string', multiple: true },
  input: { type: 'string', multiple: true },
  profile: { type: 'string' },
  initiative: { type: 'boolean' },
  'depends-on': { type: 'string', multiple: true },
  priority: { type: 'string' },
  spec: { type: 'string' },
  status: { type: 'string' },
  limit: { type: 'string' },
  slug: { type: 'string' },
  bare: { type: 'boolean' },
  chat: { type: 'string' },
  note: { type: 'string' },
  task: { type: 'string' },
  yes: { type: 'boolean' },
  keys: { type: 'string' },
  arguments: { type: 'string' },
  arg: { type: 'string', multiple: true },
  file: { type: 'string', multiple: true },
  to: { type: 'string' },
  cursor: { type: 'string' },
  repeat: { type: 'boolean' },
  'retry-of': { type: 'string' },
  invocation: { type: 'string' },
  wait: { type: 'boolean' },
  timeout: { type: 'string' },
  org: { type: 'string' },
  json: { type: 'boolean' },
  url: { type: 'string' },
  token: { type: 'string' },
  'token-file': { type: 'string' },
  help: { type: 'boolean' },
} as const;
type OptionName = keyof typeof options;

/** Those of every command. */
const COMMON: readonly OptionName[] = ['json', 'url', 'token', 'token-file', 'help'];
const WAITING: readonly OptionName[] = ['wait', 'timeout'];
const SPEC: readonly OptionName[] = [
  'objective',
  'expect',
  'input',
  'profile',
  'initiative',
  'depends-on',
  'priority',
  'spec',
];

type Syntax = Readonly<{
  takes: readonly string[];
  /** What may follow. */
  optional?: readonly string[];
  options: readonly OptionName[];
}>;

/** What follows the name of each command, and which options it takes. */
const COMMANDS = {
  'task create': { takes: ['TITLE'], options: ['org', ...SPEC, ...WAITING] },
  'task list': { takes: [], options: ['org', 'status', 'limit'] },
  'task show': { takes: ['TASK'], options: ['org'] },
  'task wait': { takes: ['TASK'], options: ['org', 'timeout'] },
  'task logs': { takes: ['TASK'], options: ['org'] },
  'task cancel': { takes: ['TASK'], options: ['org'] },
  'task retry': { takes: ['TASK'], options: ['org', ...WAITING] },
  'org create': { takes: ['NAME'], options: ['slug', 'bare'] },
  'org list': { takes: [], options: ['limit'] },
  ask: { takes: ['TEXT'], options: ['org', 'chat', 'timeout'] },
  inbox: { takes: [], options: ['org', 'status', 'limit'] },
  'inbox respond': { takes: ['ITEM', 'TEXT'], options: ['org', 'note'] },
  'inbox acknowledge': { takes: ['ITEM'], options: ['org'] },
  actions: { takes: [], options: ['org', 'status', 'task', 'limit'] },
  'actions list': { takes: [], options: ['org', 'status', 'task', 'limit'] },
  'actions show': { takes: ['ACTION'], options: ['org'] },
  'actions approve': { takes: ['ACTION'], options: ['org', 'note', 'yes'] },
  'actions reject': { takes: ['ACTION', 'REASON'], options: ['org'] },
  'actions reconcile': { takes: ['ACTION', 'OUTCOME'], options: ['org', 'note'] },
  'actions receipt': { takes: ['ACTION'], options: ['org'] },
  'receipt verify': { takes: ['FILE'], options: ['keys'] },
  tools: { takes: [], optional: ['KEY'], options: ['org'] },
  call: {
    takes: ['KEY', 'TOOL'],
    options: ['org', 'arguments', 'arg', 'file', 'to', 'cursor', 'timeout', 'repeat', 'retry-of', 'invocation'],
  },
  git: { takes: ['KEY', 'OWNER/REPO'], optional: ['FOLDER'], options: ['org'] },
  'git-credential': { takes: ['KEY', 'VERB'], options: ['org'] },
  context: { takes: [], options: ['org'] },
  'context list': { takes: [], options: ['org'] },
  'context show': { takes: ['PATH'], options: ['org'] },
  mcp: { takes: [], options: ['org', 'to', 'timeout'] },
} as const satisfies Record<string, Syntax>;
export type CommandName = keyof typeof COMMANDS;
/** Every command, as it is typed. */
export const COMMAND_NAMES: readonly string[] = Object.keys(COMMANDS);

function didYouMean(word: string, words: readonly string[], before = ''): string {
  const meant = nearest(word, words);
  return meant === undefined ? '' : `: did you mean ${before}${meant}?`;
}

/** The words of a call that are no options, however wrong these are; the value of an option is none of them. */
export function wordsOf(argv: readonly string[]): string[] {
  return parseArgs({ args: [...argv], options, allowPositionals: true, strict: false }).positionals;
}

/** `call` takes its arguments after `--json`, as JSON like what it prints then. */
function withArguments(argv: readonly string[]): string[] {
  if (wordsOf(argv)[0] !== 'call') return [...argv];
  return argv.flatMap((word, index) => {
    const [, given] = /^--json=(.*)$/s.exec(word) ?? [];
    if (given !== undefined) return ['--json', `--arguments=${given}`];
    const isGiven = argv[index - 1] === '--json' && (word === '-' || word.startsWith('{'));
    return [isGiven ? `--arguments=${word}` : word];
  });
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({ args: withArguments(argv), options, allowPositionals: true });
  } catch (error) {
    // Node's second sentence is about options of the kind --x that are meant as text.
    const [said = ''] = (error as Error).message.split('. ');
    const [, unknown] = /^Unknown option '--([\w-]+)/.exec(said) ?? [];
    throw usageError(unknown === undefined ? said : said + didYouMean(unknown, Object.keys(options), '--'));
  }
}

export type Values = ReturnType<typeof parse>['values'];
export type Called = Readonly<{ name: CommandName; args: readonly string[]; values: Values }>;

function isCommand(name: string): name is CommandName {
  return Object.hasOwn(COMMANDS, name);
}

/** "create", "list", … of "task". */
function verbsOf(noun: string): string[] {
  return Object.keys(COMMANDS).flatMap((name) => (name.startsWith(`${noun} `) ? [name.slice(noun.length + 1)] : []));
}

/** The longest name that the words begin with. */
function commandOf(words: readonly string[]): { name: CommandName; args: readonly string[] } {
  for (const length of [2, 1]) {
    const name = words.slice(0, length).join(' ');
    if (words.length >= length && isCommand(name)) return { name, args: words.slice(length) };
  }
  const [first = '', second = ''] = words;
  const below = verbsOf(first);
  if (words.length === 0) throw usageError('name a command, such as task create or ask');
  if (below.length > 0) throw usageError(`${first} takes one of ${below.join(', ')}${didYouMean(second, below)}`);
  const nouns = [...new Set(Object.keys(COMMANDS).map((name) => name.split(' ', 1)[0] ?? ''))];
  throw usageError(
    `there is no command ${JSON.stringify(first)}${didYouMean(first, nouns) || `: ${nouns.join(', ')}`}`,
  );
}

/** The first word of a call that asks for help: what it is about. */
export function helpTopic(argv: readonly string[]): string | undefined {
  return parse(argv).positionals.find((word) => word !== 'help');
}

/** What is to be done; undefined: help is asked for. @throws CommandError */
export function readCommand(argv: readonly string[]): Called | undefined {
  const { values, positionals } = parse(argv);
  if (values.help || positionals[0] === 'help') return undefined;
  const { name, args } = commandOf(positionals);
  const { takes, optional = [], options: own }: Syntax = COMMANDS[name];
  const missing = takes[args.length];
  if (missing !== undefined) throw usageError(`${name}: ${missing} is missing`);
  const names = [...takes, ...optional];
  const more = args[names.length];
  if (more !== undefined && names.length === 0 && verbsOf(name).length > 0) {
    throw usageError(`${name} takes nothing, or one of ${verbsOf(name).join(', ')}${didYouMean(more, verbsOf(name))}`);
  }
  if (more !== undefined) {
    throw usageError(`${name}: ${JSON.stringify(more)} is too much; text of several words stands in quotes`);
  }
  const allowed = new Set<string>([...COMMON, ...own]);
  const other = Object.keys(values).find((given) => !allowed.has(given));
  if (other !== undefined) throw usageError(`${name} takes no --${other}`);
  const empty = args.findIndex((arg) => arg.trim() === '');
  if (empty >= 0) throw usageError(`${name}: ${names[empty]} is empty`);
  return { name, args, values };
}

/** A whole number of an option. @throws CommandError */
export function wholeNumber(
  name: OptionName,
  given: string | undefined,
  bounds: Readonly<{ minimum: number; maximum: number }>,
): number | undefined {
  if (given === undefined) return undefined;
  const value = Number(given);
  if (/^-?\d{1,9}$/.test(given) && value >= bounds.minimum && value <= bounds.maximum) return value;
  throw usageError(`--${name} takes a whole number from ${bounds.minimum} to ${bounds.maximum}`);
}

/** A file that an option names; `-` is the standard input. @throws CommandError */
export function readText(name: OptionName, file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandError(EXIT.usage, `--${name}: ${file} cannot be read (${code})`);
  }
}

export type Target = Readonly<{
  url: string;
  token: string | undefined;
  organization: string | undefined;
  /** Whether the token is that of a run, by which an agent calls. */
  isAgent: boolean;
}>;

/**
 * Which API, as whom and for which organization: by options, the environment, `.env` (`settings`), in this order.
 * @throws CommandError
 */
export function readTarget(values: Values, environment: NodeJS.ProcessEnv, settings: NodeJS.ProcessEnv): Target {
  const given = { ...settings, ...environment };
  const named = values.url ?? given['BUSINESS_RUNNER_URL'];
  const url = named || localUrl(given);
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) throw usageError('--url takes an http:// or https:// URL');
  const file = values['token-file'];
  // The tokens of the service itself are those of its own machine, and no other address gets one.
  const own = named ? undefined : localOwnerToken(given);
  const chosen = values.token ?? (file === undefined ? undefined : readText('token-file', path.resolve(file)).trim());
  // A worker sets it for what it runs; a person who has it as well says by an option who they are.
  const ofRun = chosen === undefined ? environment['BUSINESS_RUNNER_TOKEN'] || undefined : undefined;
  const token = chosen ?? ofRun ?? (given['BUSINESS_RUNNER_OWNER_TOKEN'] || own);
  if (token && !/^[\x21-\x7e]+$/.test(token)) throw usageError('the token has characters that no token has');
  return {
    url: url.replace(/(?<!\/)\/+$/, ''),
    token: token || undefined,
    organization: values.org ?? (given['BUSINESS_RUNNER_ORGANIZATION'] || undefined),
    isAgent: ofRun !== undefined,
  };
}
