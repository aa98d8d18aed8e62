import { randomBytes } from 'node:crypto';
import { inspect, parseArgs } from 'node:util';
import { type ChatProgress, runChatRound } from './chaos/chat_round.ts';
import type { Deck } from './chaos/faults.ts';
import { type Progress, type RoundReport, runRound } from './chaos/round.ts';
import { startWorld, type World, type WorldOptions } from './chaos/world.ts';
import { printError, printLine, printText } from './terminal.ts';

const EX_USAGE = 64;
const DEFAULT_ROUNDS = 3;
const STALL_MS = 180_000;
const CHATS = 12;

const USAGE = `npm run chaos [-- options]: the fault test, long form.

Tasks run through six workers while workers, API and job processes are killed, paused and cut off at random, and Postgres
is restarted. In the end every task must be completed, exactly once, and nothing may be left over. Then the same with
chats: every reply must become final, be written once and be seen to its end, and no chat may be stuck.

  --tasks N     tasks a round (300; 0: none)
  --messages N  messages in chats a round (120; 0: none)
  --seed TEXT   of the first round; the same seed makes the same choices (random)
  --minutes M   goes on with new seeds for M minutes (without: ${DEFAULT_ROUNDS} rounds)
  --help
`;

class UsageError extends Error {
  override name = 'UsageError';
}

type Options = Readonly<{ tasks: number; messages: number; seed: string; minutes: number | undefined }>;

function wholeNumber(name: string, text: string, minimum: number, maximum: number): number {
  const value = Number(text);
  if (/^\d{1,9}$/.test(text) && value >= minimum && value <= maximum) return value;
  throw new UsageError(`--${name}: must be a whole number from ${minimum} to ${maximum}`);
}

function readOptions(argv: readonly string[]): Options | null {
  const options = {
    tasks: { type: 'string' },
    messages: { type: 'string' },
    seed: { type: 'string' },
    minutes: { type: 'string' },
    help: { type: 'boolean' },
  } as const;
  const { values } = (() => {
    try {
      return parseArgs({ args: [...argv], options });
    } catch (error) {
      throw new UsageError(error instanceof Error ? error.message : String(error));
    }
  })();
  if (values.help) return null;
  return {
    tasks: values.tasks === '0' ? 0 : wholeNumber('tasks', values.tasks ?? '300', 20, 100_000),
    messages: values.messages === '0' ? 0 : wholeNumber('messages', values.messages ?? '120', 20, 100_000),
    seed: values.seed ?? randomBytes(4).toString('hex'),
    minutes: values.minutes === undefined ? undefined : wholeNumber('minutes', values.minutes, 1, 10_000),
  };
}

/** For 300 tasks; more tasks get more of it, Postgres restarts at least as often as here. */
function deckFor(tasks: number): Deck {
  const scaled = (count: number) => Math.max(1, Math.round((count * tasks) / 300));
  return {
    'worker killed': scaled(18),
    'half of the workers killed': scaled(2),
    'worker paused': scaled(10),
    'api killed': scaled(8),
    'every api killed': scaled(2),
    'jobs killed': scaled(6),
    'all jobs killed': scaled(2),
    'connections cut': scaled(2),
    'backend killed': scaled(1),
    'postgres restarted, fast': scaled(1),
    'postgres restarted, immediate': scaled(1),
    'postgres restarted, killed': scaled(1),
  };
}

/** A line a second while a round runs. */
function teller<P>(text: (progress: P) => string) {
  const startedAt = performance.now();
  let toldAt = 0;
  return (progress: P, force = false) => {
    const now = performance.now();
    if (!force && now - toldAt < 1_000) return;
    toldAt = now;
    printLine(`${String(Math.round((now - startedAt) / 1000)).padStart(4)} s  ${text(progress)}`);
  };
}

type Report = Pick<RoundReport, 'counts' | 'violations' | 'seconds'> & { progress: { runs: number } };

function tell(report: Report, seed: string): boolean {
  const rows = [...report.counts].sort(([a], [b]) => a.localeCompare(b));
  for (const [what, count] of rows) printLine(`        ${String(count).padStart(5)}  ${what}`);
  const broken = Object.entries(report.violations);
  for (const [rule, found] of broken) {
    printLine();
    printLine(`BROKEN: ${rule} (${found.length})`);
    printText(`${inspect(found.slice(0, 10), { depth: 8, breakLength: 120 })}\n`);
  }
  const verdict = broken.length === 0 ? 'nothing is broken' : `${broken.length} rules are BROKEN`;
  printLine(`seed ${seed}: ${report.progress.runs} runs in ${report.seconds.toFixed(1)} s, ${verdict}`);
  printLine();
  return broken.length === 0;
}

/** A world of its own for `work`, whose folder is kept when something is broken. */
async function inWorld(
  options: Pick<WorldOptions, 'seed' | 'workers' | 'signal'>,
  work: (world: World) => Promise<Report>,
): Promise<boolean> {
  const world = await startWorld({ ...options, durable: true, apis: 2, jobs: 2 });
  let fine = false;
  try {
    fine = tell(await work(world), options.seed);
  } finally {
    const keep = !fine && !options.signal.aborted;
    if (keep) printLine(`the logs are in ${world.folder}`);
    await world.stop({ keep });
  }
  return fine;
}

function taskRound(tasks: number, seed: string, signal: AbortSignal): Promise<boolean> {
  printLine(`tasks, with seed ${seed}`);
  return inWorld({ seed, signal, workers: { chaotic: 4, reference: 2 } }, async (world) => {
    const told = teller(({ completed, created, runs, expired }: Progress) => {
      return `completed ${completed} of ${tasks}, created ${created}, runs ${runs}, of them expired ${expired}`;
    });
    const report = await runRound(world, { tasks, deck: deckFor(tasks), stallMs: STALL_MS, signal, onProgress: told });
    told(report.progress, true);
    return report;
  });
}

function chatRound(messages: number, seed: string, signal: AbortSignal): Promise<boolean> {
  printLine(`chats, with seed ${seed}`);
  return inWorld({ seed, signal, workers: { chat: 4 } }, async (world) => {
    const turns = Math.ceil(messages / CHATS);
    const told = teller(({ final, runs, complete, expired }: ChatProgress) => {
      return `final ${final} of ${turns * CHATS}, complete ${complete}, turns ${runs}, of them expired ${expired}`;
    });
    // A message takes longer than a task, and there are fewer of them.
    const deck = deckFor(messages * 2);
    const report = await runChatRound(world, {
      chats: CHATS,
      turns,
      deck,
      stallMs: STALL_MS,
      signal,
      onProgress: told,
    });
    told(report.progress, true);
    return report;
  });
}

async function round({ tasks, messages }: Options, seed: string, signal: AbortSignal): Promise<boolean> {
  const fine = tasks === 0 || (await taskRound(tasks, seed, signal));
  return (messages === 0 || (await chatRound(messages, seed, signal))) && fine;
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (!options) {
    printText(`${USAGE}\n`);
    return 0;
  }
  const stopping = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => stopping.abort());
  const until = options.minutes === undefined ? undefined : Date.now() + options.minutes * 60_000;
  let broken = 0;
  let rounds = 0;
  try {
    while (until === undefined ? rounds < DEFAULT_ROUNDS : Date.now() < until) {
      const seed = rounds === 0 ? options.seed : `${options.seed}-${rounds + 1}`;
      if (!(await round(options, seed, stopping.signal))) broken += 1;
      rounds += 1;
    }
  } catch (error) {
    if (!stopping.signal.aborted) throw error;
    printLine('stopped');
    return 130;
  }
  printLine(`${rounds} rounds, ${broken === 0 ? 'nothing is broken' : `${broken} of them BROKEN`}`);
  return broken === 0 ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  printError(`chaos: ${error.message}`);
  process.exitCode = EX_USAGE;
}
