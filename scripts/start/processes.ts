import { randomUUID } from 'node:crypto';
import { createServer } from 'node:net';
import path from 'node:path';
import { type Config, ConfigError, environmentWith } from '../../engine/config.ts';
import { openStorage } from '../../engine/storage/index.ts';
import { readEnvironmentFile } from '../environment_option.ts';
import { lockDataFolder } from './data_folder.ts';
import { startDatabase } from './database.ts';
import { openLogFile } from './log_file.ts';
import { screen } from './screen.ts';
import { adminToken, keptEncryptionKeys, keptReceiptKeys, ownerToken, serviceToken } from './secrets.ts';
import { type Service, startService } from './service.ts';

const ROOT = path.resolve(import.meta.dirname, '..', '..');
/** A whole stop, in ms; each part leaves the next its share, so that Postgres can still flush everything. */
const STOP = { whole: 9_000, api: 5_500, postgres: 1_500 };

export type Processes = AsyncDisposable &
  Readonly<{
    /** What a person sees when everything is ready. */
    screen: string;
    api: Service;
    jobs: Service;
    /** The connection of the migration. */
    migrateUrl: string;
  }>;

export type ProcessesOptions = Readonly<{
  signal: AbortSignal;
  /** Prints a line for the person at the terminal. */
  print: (line: string) => void;
  openLog?: typeof openLogFile;
}>;

/** Before anything is started, with a clearer message than the API's own. */
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
        `PORT: another program listens on ${config.host}:${config.port}; stop it or set another: PORT=${config.port > 65_000 ? 3000 : config.port + 1} npm start`,
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

/** Why files cannot be stored, if they cannot. It may change while everything runs, so it stops nothing. */
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

/**
 * Starts the database, the API and the jobs, and waits until they are ready. Disposal stops them in the opposite order; so
 * does a part that fails to start.
 */
export async function startProcesses(config: Config, options: ProcessesOptions): Promise<Processes> {
  const { signal, print, openLog = openLogFile } = options;
  let deadline: number | undefined;
  const left = () => {
    deadline ??= Date.now() + STOP.whole;
    return Math.max(0, deadline - Date.now());
  };
  await using parts = new AsyncDisposableStack();
  const log = (name: string) => parts.adopt(openLog(config.dataDir, name, { print }), (file) => file.close());

  parts.defer(await lockDataFolder(config.dataDir));
  await checkPort(config);
  const token = config.agentServiceTokens.length > 0 ? undefined : serviceToken(config.dataDir);
  const admin = config.adminTokens.length > 0 ? undefined : adminToken(config.dataDir);
  const { ownerAuth } = config;
  const owner = ownerAuth.mode === 'open' && ownerAuth.tokens.length === 0 ? ownerToken(config.dataDir) : undefined;
  const encryption = config.integrations.encryptionKeys.length > 0 ? undefined : keptEncryptionKeys(config.dataDir);
  const receipt = config.receiptKeys.length > 0 ? undefined : keptReceiptKeys(config.dataDir);
  const database = await startDatabase(config, { log: log('postgres'), print, signal });
  parts.defer(() => database.stop(Math.max(500, Math.min(left(), STOP.postgres))));

  print('Starting the API and the jobs …');
  const shared = {
    DATA_DIR: config.dataDir,
    ...(token ? { AGENT_SERVICE_TOKENS: token.token } : {}),
    ...(encryption ? { ENCRYPTION_KEYS: encryption.keys } : {}),
  };
  /** Compiled code is cached from start to start, which halves the time that the two need to load. */
  const environment = (values: Parameters<typeof environmentWith>[0]) => ({
    ...environmentWith({ ...shared, ...values }),
    NODE_COMPILE_CACHE: path.join(ROOT, 'node_modules', '.cache', 'compiled'),
  });
  const connection = (url: string | undefined) =>
    url === undefined ? {} : { DATABASE_URL: url, LISTEN_DATABASE_URL: undefined };
  const jobs = startService({
    name: 'jobs',
    script: path.join(ROOT, 'jobs', 'main.ts'),
    environment: () =>
      environment({ ...connection(database.urls?.jobs), ...(config.jobsPort === undefined ? { JOBS_PORT: '0' } : {}) }),
    log: log('jobs'),
    print,
  });
  parts.defer(() => jobs.stop(Math.max(500, left() - STOP.postgres)));
  const api = startService({
    name: 'api',
    script: path.join(ROOT, 'api', 'main.ts'),
    environment: (first) =>
      environment({
        ...connection(database.urls?.api),
        // Said, or tokens would mean OWNER_AUTH=token.
        ...(owner ? { OWNER_AUTH: 'open', OWNER_TOKENS: owner.token } : {}),
        ...(receipt ? { RECEIPT_KEYS: receipt.keys } : {}),
        ...(admin ? { ADMIN_TOKENS: `local:${admin.token}` } : {}),
        ...(database.urls ? { ADMIN_DATABASE_URL: database.urls.admin } : {}),
        // With PORT=0 the first process chose a port, which others know by now.
        ...(first?.url ? { PORT: new URL(first.url).port } : {}),
      }),
    log: log('api'),
    print,
  });
  parts.defer(() => api.stop(Math.min(left(), STOP.api)));

  const [{ url = '' }, { url: jobsUrl = '' }, problem] = await Promise.all([
    ready(api, signal),
    ready(jobs, signal),
    storageProblem(config),
  ]);
  const shown = screen({
    config,
    url,
    jobsUrl,
    database,
    tokenFile: token?.file,
    ownerTokenFile: owner?.file,
    adminTokenFile: admin?.file,
    encryptionKeysFile: encryption?.file,
    organizationId: randomUUID(),
    settings: readEnvironmentFile([]).settings,
    storageProblem: problem,
  });
  const running = parts.move();
  return {
    screen: shown,
    api,
    jobs,
    migrateUrl: database.migrateUrl,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
