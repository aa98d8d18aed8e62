import { workerApi } from '../worker/api.ts';
import { OptionsError, readOptions } from '../worker/options.ts';
import { pullLoop } from '../worker/pull_loop.ts';

export type Print = (line: string) => void;

export type Target = Readonly<{
  url: string;
  /** The file with the service token; undefined: the default of the worker. */
  tokenFile: string | undefined;
  organizationId: string;
  /** The parent folder of the runs' folders. */
  scratch: string;
}>;

/** The service token that a worker would use. @throws OptionsError */
export function serviceToken(tokenFile: string | undefined): string {
  const options = readOptions(['--exec', 'true', ...(tokenFile === undefined ? [] : ['--token-file', tokenFile])]);
  if (!options) throw new OptionsError('no service token');
  return options.token;
}

/** The reference worker inside this process, for one organization alone. `argv` are further options of the worker. */
export function startWorker({ url, tokenFile, organizationId, scratch }: Target, print: Print, ...argv: string[]) {
  const options = readOptions([
    ...['--url', url, '--organization', organizationId, '--worker-id', 'demo-worker', '--scratch', scratch, ...argv],
    ...(tokenFile === undefined ? [] : ['--token-file', tokenFile]),
  ]);
  if (!options) throw new OptionsError('--help is no option of a worker inside of this process');
  const drain = new AbortController();
  const working = pullLoop({ api: workerApi(options), options, print, drain: drain.signal, stop: drain.signal });
  // Whoever waits for it gets the error.
  working.catch(() => {});
  return {
    /** Rejects when the worker cannot work, for instance with a wrong token; else it stays pending. */
    failed: working.then(() => new Promise<never>(() => {})),
    /** Stops the running commands, and waits for the end. */
    async end(): Promise<void> {
      drain.abort();
      await working.catch(() => {});
    },
  };
}
