import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { closeDatabase } from '../../engine/db/schema/close.ts';
import { type Added, addAnalyst, removeAnalyst } from '../../scripts/analyst/logins.ts';
import type { EmptyDatabase, TearDown } from './database.ts';
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

/** A database for reports. A clone has not the privileges of its template: it is closed again, as each start does. */
export async function openReporting(t: TearDown): Promise<Sql> {
  const sql = await openSql(t);
  await connected(sql.url, (client) => closeDatabase(client, () => {}));
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

/** All columns of a view but the organization, as an analyst reads them; points in time as text, in UTC. */
export async function rowsOf(
  { url }: Analyst,
  { organizationId }: Readonly<{ organizationId: string }>,
  view: string,
  order: string,
): Promise<Record<string, unknown>[]> {
  return connected(url, async (client) => {
    await client.query(`set timezone = 'UTC'`);
    const { rows } = await client.query<{ row: Record<string, unknown> }>(
      `select to_jsonb(r) - 'organization_id' as row from ${view} r where organization_id = $1 order by ${order}`,
      [organizationId],
    );
    return rows.map(({ row }) => row);
  });
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

/** A login that is no superuser, but makes roles and owns the database: what migrates where nobody gives a superuser. */
export async function createOperator(t: TearDown, database: EmptyDatabase): Promise<Analyst> {
  const name = `operator_${randomBytes(6).toString('hex')}`;
  const { owner } = database;
  await owner.query(`create role ${name} login createrole password 'x'`);
  // The roles are those of the cluster, which a superuser made: it has to be a member, and to hand one of them on.
  for (const role of ['owner', 'scoped', 'global', 'report', 'api', 'jobs', 'admin', 'analyst']) {
    await owner.query(`grant runner_${role} to ${name} with admin option`);
  }
  await owner.query(`alter database ${database.name} owner to ${name}`);
  await owner.query('create extension if not exists pg_trgm; create extension if not exists btree_gin');
  t.teardown(async () => {
    await owner.query(`reassign owned by ${name} to current_user; drop owned by ${name}; drop role ${name}`);
  });
  return { name, password: 'x', url: loginUrl(database.url, name, 'x') };
}

/** Begins each result in both of psql's streams. */
const MARK = '----analyst----';

/** One session for all: each begins with what a new session begins with. */
async function byPsql(file: string, url: string, statements: readonly string[]): Promise<Said[]> {
  const { username, password, hostname, port, pathname, searchParams } = new URL(url);
  const env = {
    PGHOST: hostname,
    PGPORT: port,
    PGDATABASE: pathname.slice(1),
    PGUSER: username,
    PGPASSWORD: password,
    PGOPTIONS: searchParams.get('options') ?? '',
    PGCLIENTENCODING: 'UTF8',
    LC_ALL: 'C.UTF-8',
  };
  const script = statements
    .map((one) => `\\echo ${MARK}\n\\warn ${MARK}\n${one}\n;\nrollback;\ndiscard all;\n`)
    .join('');
  return new Promise((resolve) => {
    const child = execFile(
      file,
      ['-X', '-A', '-t', '-q', '-v', 'VERBOSITY=verbose', '-f', '-'],
      { env },
      (_, out, said) => {
        const [outs, saids] = [out, said].map((stream) => stream.split(`${MARK}\n`).slice(1));
        resolve(
          statements.map((_statement, index) => {
            // Without a session there is one message, for all.
            const told = saids?.[index] ?? said;
            const found = /(?:ERROR|FATAL): {2}(?:([0-9A-Z]{5}): )?/.exec(told);
            return { code: found ? (found[1] ?? 'refused') : undefined, out: outs?.[index]?.trim() ?? '', said: told };
          }),
        );
      },
    );
    child.stdin?.on('error', () => {});
    child.stdin?.end(script);
  });
}

async function byDriver(url: string, statements: string): Promise<Said> {
  const said: string[] = [];
  try {
    return await connected(url, async (client) => {
      client.on('notice', (notice) => said.push(notice.message ?? ''));
      const results = [await client.query({ text: statements, rowMode: 'array' })].flat();
      const rows = results.flatMap((result) => result.rows as unknown[][]);
      return { code: undefined, out: rows.map((row) => row.join('|')).join('\n'), said: said.join('\n') };
    });
  } catch (error) {
    const { code = 'refused', message } = error as { code?: string; message: string };
    return { code, out: '', said: [...said, message].join('\n') };
  }
}

/**
 * Statements as a person sends them, by the machine's psql where there is one, else by the driver; each of the list may be
 * several statements, and is asked as in a session of its own.
 */
export async function askEach(url: string, statements: readonly string[]): Promise<readonly Said[]> {
  if (PSQL !== undefined) return byPsql(PSQL, url, statements);
  const results: Said[] = [];
  for (const one of statements) results.push(await byDriver(url, one));
  return results;
}

export async function ask(url: string, statements: string): Promise<Said> {
  const [result] = await askEach(url, [statements]);
  if (!result) throw new Error('no result');
  return result;
}
