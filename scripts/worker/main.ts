import { ApiError, workerApi } from './api.ts';
import { workLoop } from './loop.ts';
import { OptionsError, readOptions, USAGE } from './options.ts';

const EX_USAGE = 64;

function say(line: string): void {
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
      say('taking nothing new; what runs is finished (again to stop it)');
      drain.abort();
    } else if (!stop.signal.aborted) {
      say('stopping what runs');
      stop.abort();
    } else process.exit(1);
  };
  // Whoever read our lines may go; the runs go on.
  process.stdout.on('error', () => {});
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  say(`worker ${options.workerId} asks ${options.url} for ${options.kinds.map((kind) => `${kind}s`).join(' and ')}`);
  const done = await workLoop({ api: workerApi(options), options, say, drain: drain.signal, stop: stop.signal });
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
