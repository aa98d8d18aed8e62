import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { createApp } from '../../api/app.ts';
import type { Endpoint } from '../../api/http/endpoint.ts';
import { type HttpTiming, TIMING } from '../../api/http/timing.ts';
import { closeServer, createHttpServer, listen } from '../../api/server.ts';
import { closeServices, endWaits, openServices, type Services } from '../../api/services.ts';
import { type Config, readConfig } from '../../engine/config.ts';
import { createLogger } from '../../engine/log.ts';
import { createTestDatabase, type TearDown, type TestDatabase } from './database.ts';
import { type Client, createClient } from './http.ts';

export const SERVICE_TOKEN = 'service-token-of-the-tests-0123456789';
export const OWNER_TOKEN = 'owner-token-of-the-tests-0123456789abc';

export const ADMIN_TOKEN = 'admin-token-of-the-tests-0123456789';

export type TestApp = Readonly<{
  url: string;
  config: Config;
  services: Services;
  database: TestDatabase;
  /** As the owner in open mode, with the token that some calls take there too. */
  owner: Client;
  /** With the service token: workers and runtimes. */
  service: Client;
  /** What the process logged, a parsed line each. */
  logged: Record<string, unknown>[];
}>;

export type TestAppOptions = Readonly<{
  config?: Partial<Config>;
  /** Endpoints of the test's own, in place of the product's. */
  endpoints?: readonly Endpoint[];
  /** How patient the server is. */
  timing?: Partial<HttpTiming>;
  /** A second process on the same database. */
  database?: TestDatabase;
}>;

/** The settings of a test's app: everything checked, nothing shared with another test. */
async function testConfig(t: TearDown, databaseUrl: string, overrides: Partial<Config>): Promise<Config> {
  const folder = await mkdtemp(path.join(tmpdir(), 'runner-app-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const config = readConfig({
    PORT: '0',
    DATA_DIR: folder,
    STORAGE_URL: pathToFileURL(path.join(folder, 'files')).href,
    DATABASE_URL: databaseUrl,
    DATABASE_POOL_SIZE: '8',
    OWNER_AUTH: 'open',
    OWNER_TOKENS: OWNER_TOKEN,
    AGENT_SERVICE_TOKENS: SERVICE_TOKEN,
    ADMIN_TOKENS: `tess:${ADMIN_TOKEN}`,
    LOG_LEVEL: 'debug',
    VALIDATE_RESPONSES: '1',
  });
  return { ...config, ...overrides };
}

/** The real app on a port of its own over a database of its own; every response is checked against its description. */
export async function startTestApp(t: TearDown, options: TestAppOptions = {}): Promise<TestApp> {
  const database = options.database ?? (await createTestDatabase(t));
  const config = await testConfig(t, database.url, options.config ?? {});
  const logged: Record<string, unknown>[] = [];
  const log = createLogger(config.logLevel, 'test', {
    destination: { write: (line) => void logged.push(JSON.parse(line)) },
  });
  const { connections } = database;
  const services = openServices(config, log, { processMetrics: false, ...(connections ? { connections } : {}) });
  const timing = { ...TIMING, ...options.timing };
  const server = createHttpServer(createApp(services, options.endpoints, timing), timing);
  const url = await listen(server, config.host, config.port);
  t.teardown(async () => {
    await Promise.all([endWaits(services), closeServer(server, 1_000)]);
    await closeServices(services);
  });
  const client = createClient(url);
  const owner = config.ownerAuth.mode === 'open' ? client.as(OWNER_TOKEN) : client;
  return { url, config, services, database, owner, service: client.as(SERVICE_TOKEN), logged };
}
