import { plainText } from '../terminal.ts';
import { CommandError, EXIT, type Exit } from './errors.ts';
import { readCommand, readTarget } from './options.ts';
import { createOutput, type Streams } from './output.ts';
import { run } from './run.ts';
import type { Stop } from './stop.ts';
import { USAGE } from './usage.ts';

export type Call = Readonly<{
  argv: readonly string[];
  environment: NodeJS.ProcessEnv;
  /** Those of `.env`; the environment wins. */
  settings: NodeJS.ProcessEnv;
  streams: Streams;
  stop: Stop;
}>;

/** One call of the command, with its exit status. */
export async function command({ argv, environment, settings, streams, stop }: Call): Promise<Exit> {
  try {
    const called = readCommand(argv);
    if (!called) {
      streams.out(USAGE);
      return EXIT.done;
    }
    const target = readTarget(called.values, environment, settings);
    const { json = false, org, url, 'token-file': tokenFile } = called.values;
    return await run(called, target, createOutput(json, streams, { org, url, 'token-file': tokenFile }), stop);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    streams.err(`${plainText(`business-runner: ${error.message}`)}\n`);
    return error.exit;
  }
}
