import { plainText } from '../terminal.ts';
import { CommandError, EXIT, type Exit, UsageError } from './errors.ts';
import { helpTopic, readCommand, readTarget, wordsOf } from './options.ts';
import { createOutput, type Streams } from './output.ts';
import { receiptVerify } from './receipts.ts';
import { run } from './run.ts';
import type { Ask, Stop } from './stop.ts';
import { helpCall, usageOf } from './usage.ts';

export type Call = Readonly<{
  argv: readonly string[];
  environment: NodeJS.ProcessEnv;
  /** Those of `.env`; the environment wins. */
  settings: NodeJS.ProcessEnv;
  streams: Streams;
  stop: Stop;
  /** Asks whoever is at the terminal; undefined: nobody is. */
  ask?: Ask | undefined;
}>;

/** One call of the command, with its exit status. */
export async function command({ argv, environment, settings, streams, stop, ask }: Call): Promise<Exit> {
  try {
    const called = readCommand(argv);
    if (!called) {
      streams.out(usageOf(helpTopic(argv)));
      return EXIT.done;
    }
    const { json = false, org, url, 'token-file': tokenFile } = called.values;
    const output = createOutput(json, streams, { org, url, 'token-file': tokenFile });
    if (called.name === 'receipt verify') return receiptVerify(output, called);
    return await run(called, readTarget(called.values, environment, settings), output, {
      stop,
      ask,
      environment,
    });
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const hint = error instanceof UsageError ? ` (${helpCall(wordsOf(argv)[0])})` : '';
    streams.err(`${plainText(`business-runner: ${error.message}${hint}`)}\n`);
    return error.exit;
  }
}
