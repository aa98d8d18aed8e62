import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { printError, printErrorText } from '../terminal.ts';
import { ApiError, type ChatClaim, type Claim, isChatClaim, isRetryable, workerApi } from '../worker/api.ts';
import { readOptions } from '../worker/options.ts';
import { pullLoop } from '../worker/pull_loop.ts';
import { type Calls, createCalls } from './calls.ts';
import { CHAT_COMMAND, INPUT_PATH, OUTPUT_PATH, type Report, type WorkerSettings, workerSettings } from './protocol.ts';
import { createRandom, type Random } from './random.ts';
import { performRun } from './run.ts';

const CONCURRENCY = 2;
const STDOUT = 1;

/** To the supervisor at once and whole: whoever kills us next cannot take it back. */
const report: Report = (line) => void writeSync(STDOUT, `${JSON.stringify(line)}\n`);

type PullTools = Readonly<{ settings: WorkerSettings; calls: Calls; random: Random }>;

/** Claims, or none: the response was empty, was lost, or was not waited for. */
async function pull({ settings, calls, random }: PullTools, limit: number): Promise<Claim[]> {
  // What an API claims for a client that has gone, it gives back.
  const leaves = random.chance(0.1);
  const signal = leaves ? AbortSignal.timeout(random.between(1, 300)) : undefined;
  const body = { workerId: settings.workerId, limit, waitMs: random.between(500, 2_500), kinds: ['task'] };
  try {
    const claims = await calls.once((api, call) => api.pull(body, call), signal);
    return claims.filter((claim: Claim | ChatClaim): claim is Claim => !isChatClaim(claim));
  } catch (error) {
    if (signal?.aborted) report({ kind: 'did', what: 'a pull abandoned' });
    else if (!isRetryable(error)) throw error;
    else await sleep(random.between(50, 300));
    return [];
  }
}

async function workForEver(settings: WorkerSettings): Promise<never> {
  const random = createRandom(settings.seed);
  const calls = createCalls(settings, random, report);
  const { workerId, scratch } = settings;
  const running = new Set<Promise<void>>();
  for (;;) {
    const free = CONCURRENCY - running.size;
    if (free === 0) await Promise.race(running);
    else {
      for (const claim of await pull({ settings, calls, random }, random.between(1, free))) {
        const done = performRun(claim, { workerId, scratch, calls, random, report }).finally(() =>
          running.delete(done),
        );
        running.add(done);
      }
    }
  }
}

const PASS_ON = `sleep 0.2; cp "$INPUT_DIR/${INPUT_PATH}" "$OUTPUT_DIR/${OUTPUT_PATH}"`;

/** The reference worker as it is, with a command that passes its input on, or one that replies in chats. */
async function workByReference(settings: WorkerSettings): Promise<void> {
  const [url = ''] = settings.urls;
  const concurrency = String(CONCURRENCY);
  const work =
    settings.kind === 'chat'
      ? ['--kind', 'chat', '--exec', CHAT_COMMAND, '--chats', concurrency]
      : ['--kind', 'task', '--exec', PASS_ON, '--concurrency', concurrency];
  const argv = [
    ...['--url', url, '--token', settings.token, '--worker-id', settings.workerId],
    ...['--scratch', settings.scratch, ...work],
  ];
  const options = readOptions(argv);
  if (!options) throw new Error('the options of the reference worker ask for help');
  const never = new AbortController().signal;
  await pullLoop({ api: workerApi(options), options, print: printError, drain: never, stop: never });
}

const settings = workerSettings.parse(JSON.parse(process.argv[2] ?? ''));
// The supervisor died: nobody else would end us.
process.stdin.once('end', () => process.exit(1)).resume();
try {
  await (settings.kind === 'chaotic' ? workForEver(settings) : workByReference(settings));
} catch (error) {
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const status = error instanceof ApiError ? ` (HTTP ${error.status})` : '';
  printErrorText(`${settings.workerId}: ${message}${status}\n`);
  process.exit(1);
}
