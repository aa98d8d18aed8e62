import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { migrate } from '../../engine/db/migrate.ts';
import { type Added, addAnalyst, removeAnalyst } from '../../scripts/analyst/logins.ts';
import type { TearDown } from './database.ts';
import { openSql, type Sql } from './transitions.ts';

/** psql of the machine, which is no part of the embedded Postgres; undefined where there is none. */
export const PSQL = (process.env['PATH'] ?? '')
  .split(path.delimiter)
  .map((folder) => path.join(folder, 'psql'))
  .find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });

export type Analyst = Readonly<{
  name: string;
  password: string;
  /** As this login. */
  url: string;
}>;

/** What came back: the rows as text, or the SQLSTATE and the message; and what was said besides. */
export type Said = Readonly<{ code: string | undefined; out: string; said: string }>;

/** A database for reports. A clone has not the privileges of its template: migrating it closes it, as each start does. */
export async function openReporting(t: TearDown): Promise<Sql> {
  const sql = await openSql(t);
  await migrate(sql.url);
  return sql;
}

/** Runs `work` on a connection of the URL's user. */
export async function connected<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

export function loginUrl(url: string, name: string, password: string): string {
  const parsed = new URL(url);
  parsed.username = name;
  parsed.password = password;
  return parsed.href;
}

export function analystName(): string {
  return `analyst_${randomBytes(6).toString('hex')}`;
}

/** The login of an analyst, made as the command makes it; dropped at the end, for logins belong to the whole server. */
export async function createAnalyst(
  t: TearDown,
  sql: Sql,
  reads: Readonly<{ all?: boolean; organizationIds?: readonly string[] }>,
): Promise<Analyst> {
  const name = analystName();
  const { all = false, organizationIds = [] } = reads;
  const added: Added = await connected(sql.url, (client) =>
    addAnalyst(client, name, { all, organizationIds }, () => {}),
  );
  t.teardown(() => connected(sql.url, (client) => removeAnalyst(client, name)).then(() => {}));
  const password = added.password ?? '';
  return { name, password, url: loginUrl(sql.url, name, password) };
}

function bare(error: unknown): Said {
  const { code, message } = error as { code?: string; message: string };
  return { code: code ?? 'unknown', out: '', said: message };
}

async function byPsql(file: string, url: string, statements: string): Promise<Said> {
  const { username, password, hostname, port, pathname } = new URL(url);
  const argv = ['-X', '-A', '-t', '-q', '-v', 'ON_ERROR_STOP=1', '-v', 'VERBOSITY=verbose', '-f', '-'];
  const env = {
    PGHOST: hostname,
    PGPORT: port,
    PGDATABASE: pathname.slice(1),
    PGUSER: username,
    PGPASSWORD: password,
    PGCLIENTENCODING: 'UTF8',
    LC_ALL: 'C.UTF-8',
  };
  return new Promise((resolve) => {
    const child = execFile(file, argv, { env }, (_error, out, said) => {
      const found = /(?:ERROR|FATAL): {2}(?:([0-9A-Z]{5}): )?/.exec(said);
      resolve({ code: found ? (found[1] ?? 'refused') : undefined, out, said });
    });
    child.stdin?.on('error', () => {});
    child.stdin?.end(statements);
  });
}

async function byDriver(url: string, statements: string): Promise<Said> {
  try {
    return await connected(url, async (client) => {
      const said: string[] = [];
      client.on('notice', (notice) => said.push(notice.message ?? ''));
      const results = [await client.query({ text: statements, rowMode: 'array' })].flat();
      const rows = results.flatMap((result) => result.rows as unknown[][]);
      return { code: undefined, out: rows.map((row) => row.join('|')).join('\n'), said: said.join('\n') };
    });
  } catch (error) {
    return bare(error);
  }
}

/** Statements as a person sends them, by the machine's psql where there is one, else by the driver. */
export function ask(url: string, statements: string): Promise<Said> {
  return PSQL === undefined ? byDriver(url, statements) : byPsql(PSQL, url, statements);
}
