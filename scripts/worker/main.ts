import { ApiError, workerApi } from './api.ts';
import { OptionsError, readOptions, USAGE } from './options.ts';
import { pullLoop } from './pull_loop.ts';

const EX_USAGE = 64;

function print(line: string): void {
  process.stdout.write(`${new Date().toTimeString().slice(0, 8)}  ${line}\n`);
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (!options) {
    process.stdout.write(USAGE);
    return 0;
  }
  const drain = new AbortController();
  const stop = new AbortController();
  const onSignal = () => {
    if (!drain.signal.aborted) {
      print('draining: running commands finish, nothing new is pulled (again to stop them)');
      drain.abort();
    } else if (!stop.signal.aborted) {
      print('stopping the running commands');
      stop.abort();
    } else process.exit(1);
  };
  // The runs go on when the reader of our output is gone.
  process.stdout.on('error', () => {});
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  print(
    `worker ${options.workerId} pulls from ${options.url}: ${options.kinds.map((kind) => `${kind}s`).join(' and ')}`,
  );
  const done = await pullLoop({ api: workerApi(options), options, print, drain: drain.signal, stop: stop.signal });
  return done ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof OptionsError) && !(error instanceof ApiError)) throw error;
  const hint = error instanceof ApiError && error.status === 401 ? ': is this the service token of this API?' : '';
  process.stderr.write(`worker: ${error.message}${hint}\n`);
  process.exitCode = error instanceof OptionsError ? EX_USAGE : 1;
}
