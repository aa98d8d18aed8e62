import { publishBuiltinCatalog } from '../engine/catalog/index.ts';
import { readConfig } from '../engine/config.ts';
import { NotMigratedError, requireMigrated } from '../engine/db/migrated.ts';
import { createLogger } from '../engine/log.ts';
import { startMonitor } from '../engine/monitoring/server.ts';
import { endProcess } from '../engine/process/failure.ts';
import { writeOutput } from '../engine/process/output.ts';
import { tellParent } from '../engine/process/parent.ts';
import { settingsHelp } from '../engine/settings_text.ts';
import { loadAdmin } from './admin/instance.ts';
import { createApp } from './app.ts';
import { closeServer, createHttpServer, listen } from './server.ts';
import { closeServices, endWaits, openServices, type Services } from './services.ts';

const GRACE_MS = 5_000;

/** Whether the database responds; one that is away comes up later. @throws NotMigratedError */
async function checkDatabase({ db, log }: Services): Promise<boolean> {
  try {
    await requireMigrated(db);
    return true;
  } catch (error) {
    if (error instanceof NotMigratedError) throw error;
    log.warn({ err: error }, 'the database is away');
    return false;
  }
}

/**
 * Publishes the shipped template catalog where none is: now, so that it is there when the API says that it is ready, and
 * with every new connection, for Postgres may come up after us.
 */
async function keepCatalogPublished({ config, db, listener, log }: Services, isThere: boolean): Promise<void> {
  if (config.agentCatalog === 'none') return;
  const publish = () =>
    publishBuiltinCatalog(db).catch((error: unknown) => log.warn({ err: error }, 'the catalog is not published yet'));
  listener.onResync(() => void publish());
  if (isThere) await publish();
}

/**
 * Builds the administration's schema: now, since other requests would wait for seconds behind the first one that needs it, and
 * where the database is away, as soon as it is back.
 */
async function keepAdminPrepared({ admin, listener }: Services): Promise<void> {
  listener.onResync(() => void admin.prepare());
  await admin.prepare();
}

/** Runs the API until SIGTERM, SIGINT, or the end of the process that started it. */
async function main(): Promise<void> {
  const config = readConfig();
  const log = createLogger(config.logLevel, 'api', {
    onTrouble: (trouble) => tellParent({ type: 'log', ...trouble }),
  });
  await loadAdmin(config);
  const services = openServices(config, log, { processMetrics: true });
  const server = createHttpServer(createApp(services));
  const { host, metricsPort, metricsTokens } = config;
  const { registry } = services.metrics;
  const monitor =
    metricsPort === undefined ? undefined : await startMonitor({ host, port: metricsPort, registry, metricsTokens });
  if (monitor) log.info({ url: monitor.url }, 'metrics are served');

  let stopping = false;
  async function stop(reason: string): Promise<void> {
    if (stopping) return;
    stopping = true;
    log.info({ reason }, 'stopping');
    // Waits end at once, so that their connections do not hold up the others.
    await Promise.all([endWaits(services), closeServer(server, GRACE_MS)]);
    await Promise.all([closeServices(services), monitor?.close()]);
    process.exit(0);
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal));
  // The supervising parent died without a signal: nobody else would stop this process.
  process.on('disconnect', () => void stop('the parent process is gone'));

  const isThere = await checkDatabase(services);
  await Promise.all([keepCatalogPublished(services, isThere), keepAdminPrepared(services)]);
  const url = await listen(server, host, config.port);
  log.info({ url, ownerAuth: config.ownerAuth.mode }, 'the API listens');
  tellParent({ type: 'ready', url });
}

if (process.argv.includes('--help')) writeOutput(process.stdout, `node api/main.ts\n\n${settingsHelp()}`);
else main().catch(endProcess);
