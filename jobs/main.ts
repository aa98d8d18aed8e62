import { ConfigError, readConfig, settingsHelp } from '../engine/config.ts';
import { createLogger } from '../engine/log.ts';
import { writeOutput } from '../engine/process/output.ts';
import { tellParent } from '../engine/process/parent.ts';
import { startJobs } from './runner/process.ts';

const EX_CONFIG = 78;
/** Whatever hangs: the process is gone within five seconds, and its jobs run elsewhere. */
const STOP_WITHIN_MS = 4_900;

/** Runs jobs until SIGTERM, SIGINT, or the end of the process that started it. */
async function main(): Promise<void> {
  const config = readConfig();
  const log = createLogger(config.logLevel, 'jobs', {
    onTrouble: (trouble) => tellParent({ type: 'log', ...trouble }),
  });
  const jobs = startJobs(config, log);

  let stopping = false;
  async function stop(reason: string): Promise<void> {
    if (stopping) return;
    stopping = true;
    log.info({ reason }, 'stopping');
    setTimeout(() => process.exit(0), STOP_WITHIN_MS).unref();
    await jobs.stop();
    process.exit(0);
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal));
  // The supervising parent died without a signal: nobody else would stop this process.
  process.on('disconnect', () => void stop('the parent process is gone'));

  await Promise.race([jobs.ready, jobs.failed]);
  tellParent({ type: 'ready' });
  await jobs.failed;
}

function fail(error: unknown): void {
  const message = error instanceof Error ? (error instanceof ConfigError ? error.message : error.stack) : String(error);
  writeOutput(process.stderr, `${message}\n`);
  process.exit(error instanceof ConfigError ? EX_CONFIG : 1);
}

if (process.argv.includes('--help')) writeOutput(process.stdout, `node jobs/main.ts\n\n${settingsHelp()}`);
else main().catch(fail);
