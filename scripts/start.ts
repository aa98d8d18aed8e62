import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { type Config, ConfigError, environmentWith, readConfig, settingsHelp } from '../engine/config.ts';
import { MigrateError } from '../engine/db/migrate.ts';
import { PostgresError } from '../engine/postgres/error.ts';
import { LockedError } from '../engine/process/lock.ts';
import { openStorage } from '../engine/storage/index.ts';
import { RunningError, takeDataFolder } from './start/data_folder.ts';
import { startDatabase } from './start/database.ts';
import { openLogFile } from './start/log_file.ts';
import { screen } from './start/screen.ts';
import { adminToken, serviceToken } from './start/secrets.ts';
import { type Service, ServiceError, startService } from './start/service.ts';
import { printError, printErrorText, printLine, printText } from './terminal.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
const EX_USAGE = 64;
const EX_CONFIG = 78;
/** All of a stop, in ms; each part leaves the next its share, so that Postgres can still write everything down. */
const STOP = { whole: 9_000, api: 5_500, postgres: 1_500 };

const USAGE = `npm start: everything on this machine: an embedded Postgres (unless DATABASE_URL is set), the API and the jobs.

  -- --help         shows this
  -- --no-env-file  does not read the settings in .env

`;

/** A friendlier end than the API's own, and before anything was started. */
async function checkPort(config: Config): Promise<void> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(config.port, config.host, resolve);
    });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') {
      throw new ConfigError(
        `PORT: another program listens on ${config.host}:${config.port}; stop it or set another PORT`,
      );
    }
    if (code === 'EACCES') throw new ConfigError(`PORT: this user may not listen on port ${config.port}`);
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
      throw new ConfigError(`HOST: ${config.host} is no address of this machine`);
    }
    throw new ConfigError(`HOST: cannot listen on ${config.host}: ${message}`);
  } finally {
    server.close();
  }
}

function loadEnvironmentFile(): void {
  const file = path.join(ROOT, '.env');
  // What the environment says already wins.
  if (existsSync(file)) process.loadEnvFile(file);
}

/** Aborted by the first signal; a second one, later than what npm passes on of the same Ctrl-C, gives up waiting. */
function stopSignal(): AbortSignal {
  const controller = new AbortController();
  let firstAt = 0;
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) {
        // The API and the jobs are killed at our exit; Postgres stops by itself, because its guard sees that we are gone.
        if (Date.now() - firstAt > 500) process.exit(130);
        return;
      }
      firstAt = Date.now();
      controller.abort(new Stopped());
    });
  }
  return controller.signal;
}

class Stopped extends Error {
  override name = 'Stopped';
}

/** Why files cannot be stored, if they cannot: it may change while all runs, so it ends nothing. */
async function storageProblem(config: Config): Promise<string | undefined> {
  try {
    await openStorage(config.storageUrl, config.aws).check();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

async function ready(service: Service, signal: AbortSignal) {
  const stopped = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  return Promise.race([service.ready, stopped]);
}

/** Runs until the signal is aborted; whatever was started is stopped, in the opposite order, also when a part fails. */
async function run(config: Config, signal: AbortSignal): Promise<void> {
  let deadline: number | undefined;
  const left = () => {
    deadline ??= Date.now() + STOP.whole;
    return Math.max(0, deadline - Date.now());
  };
  await using parts = new AsyncDisposableStack();
  const log = (name: string) => parts.adopt(openLogFile(config.dataDir, name), (file) => file.close());

  parts.defer(await takeDataFolder(config.dataDir));
  await checkPort(config);
  const token = config.agentServiceTokens.length > 0 ? undefined : serviceToken(config.dataDir);
  const admin = config.adminTokens.length > 0 ? undefined : adminToken(config.dataDir);
  const database = await startDatabase(config, { log: log('postgres'), tell: printLine, signal });
  parts.defer(() => database.stop(Math.max(500, Math.min(left(), STOP.postgres))));

  const shared = { DATA_DIR: config.dataDir, ...(token ? { AGENT_SERVICE_TOKENS: token.token } : {}) };
  /** Compiled code is kept from start to start, which halves the time the two need to load. */
  const environment = (values: Parameters<typeof environmentWith>[0]) => ({
    ...environmentWith({ ...shared, ...values }),
    NODE_COMPILE_CACHE: path.join(ROOT, 'node_modules', '.cache', 'compiled'),
  });
  const connection = (url: string | undefined) =>
    url === undefined ? {} : { DATABASE_URL: url, LISTEN_DATABASE_URL: undefined };
  const jobs = startService({
    name: 'jobs',
    script: path.join(ROOT, 'jobs', 'main.ts'),
    environment: () => environment(connection(database.urls?.jobs)),
    log: log('jobs'),
    tell: printLine,
  });
  parts.defer(() => jobs.stop(Math.max(500, left() - STOP.postgres)));
  const api = startService({
    name: 'api',
    script: path.join(ROOT, 'api', 'main.ts'),
    environment: (first) =>
      environment({
        ...connection(database.urls?.api),
        ...(admin ? { ADMIN_TOKENS: `local:${admin.token}` } : {}),
        ...(database.urls ? { ADMIN_DATABASE_URL: database.urls.admin } : {}),
        // With PORT=0 the first one found a port, which is known to others now.
        ...(first?.url ? { PORT: new URL(first.url).port } : {}),
      }),
    log: log('api'),
    tell: printLine,
  });
  parts.defer(() => api.stop(Math.min(left(), STOP.api)));

  const [{ url = '' }, , problem] = await Promise.all([
    ready(api, signal),
    ready(jobs, signal),
    storageProblem(config),
  ]);
  const organizationId = randomUUID();
  printText(
    screen({
      config,
      url,
      database,
      tokenFile: token?.file,
      adminTokenFile: admin?.file,
      organizationId,
      storageProblem: problem,
    }),
  );
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

async function main(): Promise<void> {
  if (process.argv.includes('--help')) {
    printText(USAGE + settingsHelp());
    return;
  }
  const unknown = process.argv.slice(2).find((argument) => argument !== '--no-env-file');
  if (unknown !== undefined) {
    // A misspelt option must not start something else than was meant.
    printError(`npm start knows no ${unknown}; see npm start -- --help`);
    process.exitCode = EX_USAGE;
    return;
  }
  if (!process.argv.includes('--no-env-file')) loadEnvironmentFile();
  const signal = stopSignal();
  signal.addEventListener('abort', () => printLine('Stopping …'), { once: true });
  try {
    await run(readConfig(), signal);
  } finally {
    if (signal.aborted) printLine('Stopped.');
  }
}

try {
  await main();
} catch (error) {
  if (!(error instanceof Stopped)) {
    const known = [ConfigError, LockedError, MigrateError, PostgresError, RunningError, ServiceError].some(
      (kind) => error instanceof kind,
    );
    printErrorText(`${error instanceof Error ? (known ? error.message : error.stack) : error}\n`);
    process.exitCode = error instanceof ConfigError ? EX_CONFIG : 1;
  }
}
