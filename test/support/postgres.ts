import { chmod, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Client } from 'pg';
import { migrate } from '../../engine/db/migrate.ts';
import { binariesIn } from '../../engine/postgres/binaries.ts';
import { startPostgres, throwAway } from '../../engine/postgres/embedded.ts';

export const TEMPLATE = 'runner_template';

export type TestPostgres = Readonly<{
  /** The migrated template database, as superuser. */
  templateUrl: string;
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

/** One statement or more as the URL's user, on a connection of its own. */
export async function execute(url: string, text: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}

/** A Postgres that is thrown away, with a template database migrated once; `bin`: other binaries than the embedded 18. */
export async function startTestPostgres(bin?: string): Promise<TestPostgres> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'runner-test-'));
  await chmod(folder, 0o711); // Postgres passes through it as another account
  try {
    const postgres = await startPostgres({
      cluster: path.join(folder, 'postgres'),
      password: 'test',
      settings: throwAway,
      ...(bin ? { binaries: await binariesIn(bin) } : {}),
    });
    const stop = async () => {
      await postgres.stop();
      await rm(folder, { recursive: true, force: true });
    };
    try {
      await execute(postgres.url, `create database ${TEMPLATE}`);
      const templateUrl = databaseUrl(postgres.url, TEMPLATE);
      await migrate(templateUrl);
      return { templateUrl, version: postgres.version, stop, unref: postgres.unref };
    } catch (error) {
      await stop();
      throw error;
    }
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}
