import { readConfig } from '../engine/config.ts';
import { createLogger } from '../engine/log.ts';
import { startMonitor } from '../engine/monitoring/server.ts';
import { endProcess } from '../engine/process/failure.ts';
import { writeOutput } from '../engine/process/output.ts';
import { tellParent } from '../engine/process/parent.ts';
import { settingsHelp } from '../engine/settings_text.ts';
import { startJobs } from './runner/process.ts';

/** Whatever hangs: the process is gone within five seconds, and its jobs run elsewhere. */
const STOP_WITHIN_MS = 4_900;

/** Runs jobs until SIGTERM, SIGINT, or the end of the process that started it. */
async function main(): Promise<void> {
  const config = readConfig();
  const log = createLogger(config.logLevel, 'jobs', {
    onTrouble: (trouble) => tellParent({ type: 'log', ...trouble }),
  });
  const jobs = startJobs(config, log, { processMetrics: true });
  const { host, jobsPort: port, metricsTokens } = config;
  const { registry, notReady } = jobs;
  const monitor =
    port === undefined ? undefined : await startMonitor({ host, port, registry, metricsTokens, notReady });
  if (monitor) log.info({ url: monitor.url }, 'probes and metrics are served');

  let stopping = false;
  async function stop(reason: string): Promise<void> {
    if (stopping) return;
    stopping = true;
    log.info({ reason }, 'stopping');
    setTimeout(() => process.exit(0), STOP_WITHIN_MS).unref();
    await Promise.all([jobs.stop(), monitor?.close()]);
    process.exit(0);
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal));
  // The supervising parent died without a signal: nobody else would stop this process.
  process.on('disconnect', () => void stop('the parent process is gone'));

  await Promise.race([jobs.ready, jobs.failed]);
  tellParent({ type: 'ready', ...(monitor ? { url: monitor.url } : {}) });
  await jobs.failed;
}

if (process.argv.includes('--help')) writeOutput(process.stdout, `node jobs/main.ts\n\n${settingsHelp()}`);
else main().catch(endProcess);
