import { readEnvironmentFile } from '../environment_option.ts';
import { countPresses } from '../presses.ts';
import { printError, printText, printTimed } from '../terminal.ts';
import { ApiError, workerApi } from './api.ts';
import { CommandNotFoundError } from './command_gate.ts';
import { OptionsError, readOptions, USAGE } from './options.ts';
import { missingProgram } from './program.ts';
import { pullLoop, startText } from './pull_loop.ts';

const EX_USAGE = 64;
/** As a shell says it. */
const EX_NOT_FOUND = 127;

async function main(): Promise<number> {
  const { argv, settings } = readEnvironmentFile(process.argv.slice(2));
  const options = readOptions(argv, process.env, settings);
  if (!options) {
    printText(USAGE);
    return 0;
  }
  const missing = options.command === '' ? undefined : missingProgram(options.command, options.environment);
  if (missing !== undefined) throw new CommandNotFoundError(`--exec: ${missing}`);
  const drain = new AbortController();
  const stop = new AbortController();
  const press = countPresses();
  const onSignal = () => {
    const pressed = press();
    if (pressed === 1) {
      printTimed('draining: running commands finish, nothing new is pulled (again to stop them)');
      drain.abort();
    } else if (pressed === 2) {
      printTimed('stopping the running commands');
      stop.abort();
    } else if (pressed > 2) process.exit(1);
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  printTimed(startText(options));
  const done = await pullLoop({
    api: workerApi(options),
    options,
    print: printTimed,
    drain: drain.signal,
    stop: stop.signal,
  });
  return done ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  const known = [OptionsError, ApiError, CommandNotFoundError].some((kind) => error instanceof kind);
  if (!(error instanceof Error) || !known) throw error;
  const hint = error instanceof ApiError && error.status === 401 ? ': is this the service token of this API?' : '';
  printError(`worker: ${hint === '' ? error.message : error.message.replace(/\.$/, '')}${hint}`);
  process.exitCode =
    error instanceof OptionsError ? EX_USAGE : error instanceof CommandNotFoundError ? EX_NOT_FOUND : 1;
}
