import { randomBytes } from 'node:crypto';
import { inspect, parseArgs } from 'node:util';
import type { Deck } from './chaos/faults.ts';
import { type Progress, type RoundReport, runRound } from './chaos/round.ts';
import { startWorld } from './chaos/world.ts';

const EX_USAGE = 64;
const DEFAULT_ROUNDS = 3;
const STALL_MS = 180_000;

const USAGE = `npm run chaos [-- options]: the fault test, long form.

Tasks run through six workers while workers, API and job processes are killed, paused and cut off at random, and Postgres
is restarted. In the end every task must be completed, exactly once, and nothing may be left over.

  --tasks N     tasks a round (300)
  --seed TEXT   of the first round; the same seed makes the same choices (random)
  --minutes M   goes on with new seeds for M minutes (without: ${DEFAULT_ROUNDS} rounds)
  --help
`;

class UsageError extends Error {
  override name = 'UsageError';
}

type Options = Readonly<{ tasks: number; seed: string; minutes: number | undefined }>;

function wholeNumber(name: string, text: string, minimum: number, maximum: number): number {
  const value = Number(text);
  if (/^\d{1,9}$/.test(text) && value >= minimum && value <= maximum) return value;
  throw new UsageError(`--${name}: must be a whole number from ${minimum} to ${maximum}`);
}

function readOptions(argv: readonly string[]): Options | null {
  const options = {
    tasks: { type: 'string' },
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
    tasks: wholeNumber('tasks', values.tasks ?? '300', 20, 100_000),
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

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** A line a second while a round runs. */
function teller(tasks: number) {
  const startedAt = performance.now();
  let toldAt = 0;
  return (progress: Progress, force = false) => {
    const now = performance.now();
    if (!force && now - toldAt < 1_000) return;
    toldAt = now;
    const { completed, created, runs, expired } = progress;
    const seconds = String(Math.round((now - startedAt) / 1000)).padStart(4);
    say(
      `${seconds} s  completed ${completed} of ${tasks}, created ${created}, runs ${runs}, of them expired ${expired}`,
    );
  };
}

function tell(report: RoundReport, seed: string): boolean {
  const rows = [...report.counts].sort(([a], [b]) => a.localeCompare(b));
  for (const [what, count] of rows) say(`        ${String(count).padStart(5)}  ${what}`);
  const broken = Object.entries(report.violations);
  for (const [rule, found] of broken) {
    say(`\nBROKEN: ${rule} (${found.length})`);
    say(inspect(found.slice(0, 10), { depth: 8, breakLength: 120 }));
  }
  const verdict = broken.length === 0 ? 'nothing is broken' : `${broken.length} rules are BROKEN`;
  say(`seed ${seed}: ${report.progress.runs} runs in ${report.seconds.toFixed(1)} s, ${verdict}\n`);
  return broken.length === 0;
}

async function round(tasks: number, seed: string, signal: AbortSignal): Promise<boolean> {
  say(`round with seed ${seed}`);
  const world = await startWorld({
    ...{ seed, signal, durable: true, apis: 2, jobs: 2 },
    workers: { chaotic: 4, reference: 2 },
  });
  let fine = false;
  try {
    const told = teller(tasks);
    const report = await runRound(world, { tasks, deck: deckFor(tasks), stallMs: STALL_MS, signal, onProgress: told });
    told(report.progress, true);
    fine = tell(report, seed);
  } finally {
    const keep = !fine && !signal.aborted;
    if (keep) say(`the logs are in ${world.folder}`);
    await world.stop({ keep });
  }
  return fine;
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (!options) {
    say(USAGE);
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
      if (!(await round(options.tasks, seed, stopping.signal))) broken += 1;
      rounds += 1;
    }
  } catch (error) {
    if (!stopping.signal.aborted) throw error;
    say('stopped');
    return 130;
  }
  say(`${rounds} rounds, ${broken === 0 ? 'nothing is broken' : `${broken} of them BROKEN`}`);
  return broken === 0 ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`chaos: ${error.message}\n`);
  process.exitCode = EX_USAGE;
}
