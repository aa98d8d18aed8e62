import { chmod, mkdtemp, rm, statfs } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Client } from 'pg';
import { migrate } from '../../engine/db/migrate.ts';
import { binariesIn } from '../../engine/postgres/binaries.ts';
import { startPostgres, throwAway } from '../../engine/postgres/embedded.ts';

export const TEMPLATE = 'runner_template';

export type TestServer = Readonly<{
  /** As superuser. */
  url: string;
  version: string;
  stop: () => Promise<void>;
  unref: () => void;
}>;

/** The same server, another database. */
export function databaseUrl(url: string, name: string): string {
  const parsed = new URL(url);
  parsed.pathname = `/${name}`;
  return parsed.href;
}

/** The rows of a statement as the URL's user, on a connection of its own. */
export async function query(url: string, text: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  // A server that ends the connection fails the statement at hand, not the process.
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

/** One statement or more, for their effect. */
export async function execute(url: string, text: string): Promise<void> {
  await query(url, text);
}

const MEMORY = '/dev/shm';
/** Databases of the files that run, the log, and room for what a test stores. */
const MEMORY_BYTES = 4 * 1024 ** 3;

/** A database is cloned in memory in a quarter of the time; where that is small or none, on the disk. */
async function scratchFolder(): Promise<string> {
  const memory = await statfs(MEMORY).catch(() => undefined);
  return memory && memory.bavail * memory.bsize >= MEMORY_BYTES ? MEMORY : os.tmpdir();
}

/** An empty Postgres that is thrown away: the embedded 18, or the binaries that TEST_POSTGRES_BIN names. */
export async function startTestServer(bin = process.env['TEST_POSTGRES_BIN']): Promise<TestServer> {
  const folder = await mkdtemp(path.join(await scratchFolder(), 'runner-test-'));
  await chmod(folder, 0o711); // Postgres passes through it as another account
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    const postgres = await startPostgres({
      cluster: path.join(folder, 'postgres'),
      password: 'test',
      settings: throwAway,
      ...(bin ? { binaries: await binariesIn(bin) } : {}),
    });
    const stop = async () => {
      await postgres.stop();
      await remove();
    };
    return { url: postgres.url, version: postgres.version, stop, unref: postgres.unref };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** The same with a template database, migrated once; the URL is the template's. */
export async function startTestPostgres(bin?: string): Promise<TestServer> {
  const server = await startTestServer(bin);
  try {
    await execute(server.url, `create database ${TEMPLATE}`);
    const url = databaseUrl(server.url, TEMPLATE);
    await migrate(url);
    return { ...server, url };
  } catch (error) {
    await server.stop();
    throw error;
  }
}
