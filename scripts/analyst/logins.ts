import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { z } from 'zod';
import { callWith } from '../../engine/db/function_text.ts';
import { IS_ANALYST } from '../../engine/db/schema/analysts.ts';
import { makePassword, scramVerifier } from './password.ts';

/** What a person can mend, in one line. */
export class AnalystError extends Error {
  override name = 'AnalystError';
}

/** Sessions that one login may have at once: what bounds it where it lifts its own time limits. */
const CONNECTIONS = 4;
/** What each session begins with; a session may set them anew, save for the last one, which only superusers give. */
const SETTINGS: Readonly<Record<string, string>> = {
  search_path: 'reporting',
  statement_timeout: '60s',
  lock_timeout: '5s',
  idle_in_transaction_session_timeout: '60s',
  idle_session_timeout: '1h',
  default_transaction_read_only: 'on',
};
const TEMP_FILE_LIMIT = '1GB';
const END_LIMIT_MS = 10_000;

const grantResult = z.object({ login: z.string(), all: z.boolean(), organizationIds: z.array(z.string()) });
export type Granted = z.output<typeof grantResult>;

const listResult = z.array(
  z.object({
    login: z.string(),
    all: z.boolean(),
    createdAt: z.string(),
    /** There is no such login any more, or another one that has the name now and reads nothing of this. */
    gone: z.boolean(),
    organizations: z.array(z.object({ id: z.string(), slug: z.string() })),
  }),
);
export type Analyst = z.output<typeof listResult>[number];

const id = pg.escapeIdentifier;

/** @throws AnalystError for a name that is none for a login, or that belongs to the server or the project */
export function checkName(name: string): void {
  if (!/^[a-z][a-z0-9_]{0,62}$/.test(name) || /^(pg_|runner_|public$|none$)/.test(name)) {
    throw new AnalystError(
      `${JSON.stringify(name)} is no name for an analyst: a letter, then letters, digits and _, all small, 63 at most, not pg_… or runner_…`,
    );
  }
}

/** Runs `work` in a transaction of its own. */
async function transaction<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  await client.query('begin');
  try {
    const result = await work();
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback');
    throw error;
  }
}

async function become(client: pg.Client, role: string): Promise<void> {
  await client.query(`set local role ${role}`).catch((error: Error) => {
    throw new AnalystError(`this database or login is not one that npm run migrate was used with: ${error.message}`);
  });
}

/** What operators alone may call: no login of the API or the jobs may become this role. */
async function asOperator(client: pg.Client, work: () => Promise<unknown>): Promise<unknown> {
  await become(client, 'runner_global');
  const result = await work();
  await client.query('reset role');
  return result;
}

/** `missing`: no role has this name. `analyst`: made by this command, in this database or another one of the cluster. */
async function stateOf(client: pg.Client, name: string): Promise<'missing' | 'analyst' | 'other'> {
  const { rows } = await client.query<{ analyst: boolean }>(
    `select ${IS_ANALYST} as analyst from pg_roles r where r.rolname = $1`,
    [name],
  );
  if (!rows[0]) return 'missing';
  return rows[0].analyst ? 'analyst' : 'other';
}

/** Its removal began, and was cut off: it cannot connect. */
async function leaving(client: pg.Client, name: string): Promise<boolean> {
  const { rows } = await client.query('select from pg_roles where rolname = $1 and rolconnlimit = 0', [name]);
  return rows.length > 0;
}

async function create(client: pg.Client, name: string, password: string): Promise<string[]> {
  const verifier = pg.escapeLiteral(scramVerifier(password));
  await client.query(`create role ${id(name)} login nosuperuser nocreatedb nocreaterole noreplication nobypassrls inherit
    connection limit ${CONNECTIONS} password ${verifier} in role runner_analyst`);
  for (const [setting, value] of Object.entries(SETTINGS)) {
    await client.query(`alter role ${id(name)} set ${setting} = ${pg.escapeLiteral(value)}`);
  }
  await client.query('savepoint temp_file_limit');
  try {
    await client.query(`alter role ${id(name)} set temp_file_limit = ${pg.escapeLiteral(TEMP_FILE_LIMIT)}`);
    return [];
  } catch (error) {
    await client.query('rollback to savepoint temp_file_limit');
    return [
      `temp_file_limit is for superusers to set (alter role ${name} set temp_file_limit = '${TEMP_FILE_LIMIT}'): ${(error as Error).message}`,
    ];
  }
}

async function admit(client: pg.Client, name: string): Promise<void> {
  const { rows } = await client.query<{ may: boolean; database: string }>(
    `select has_database_privilege($1, current_database(), 'connect') as may, current_database() as database`,
    [name],
  );
  // Only where connecting is not left open to everybody.
  if (rows[0] && !rows[0].may) await client.query(`grant connect on database ${id(rows[0].database)} to ${id(name)}`);
}

/** What an analyst could do besides reading the views, because the server leaves it open to everybody. */
async function leftOpen(client: pg.Client, name: string): Promise<string[]> {
  const { rows } = await client.query<{ database: string }>(
    `select datname as database from pg_database
     where datallowconn and datname <> current_database() and has_database_privilege($1, oid, 'connect') order by 1`,
    [name],
  );
  const { rows: functions } = await client.query<{ objects: boolean; locks: boolean }>(
    `select has_function_privilege($1, 'pg_catalog.lo_create(oid)', 'execute') as objects,
       has_function_privilege($1, 'pg_catalog.pg_advisory_lock(bigint)', 'execute') as locks`,
    [name],
  );
  const open = [
    functions[0]?.objects && 'make large objects',
    functions[0]?.locks && 'take advisory locks without end',
  ];
  const what = open.filter((one) => typeof one === 'string').join(' and ');
  return [
    ...rows.map(
      ({ database }) =>
        `it can connect to the database ${database} (revoke connect on database ${id(database)} from public)`,
    ),
    ...(what === '' ? [] : [`it can ${what}: run npm run migrate once as a superuser to close that`]),
  ];
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * The ids of organizations that a person names by id or slug. Whether an id is one is seen when it is granted.
 * @throws AnalystError when nothing has the slug
 */
export async function findOrganizations(client: pg.Client, names: readonly string[]): Promise<string[]> {
  const refs = names.map((name) => name.toLowerCase());
  const slugs = refs.filter((ref) => !UUID.test(ref));
  if (slugs.length === 0) return refs;
  const rows = await transaction(client, async () => {
    await become(client, 'runner_analyst');
    const found = await client.query<{ id: string; slug: string }>(
      'select organization_id as id, slug from reporting.organizations where slug = any ($1)',
      [slugs],
    );
    return found.rows;
  });
  const missing = slugs.find((slug) => !rows.some((row) => row.slug === slug));
  if (missing !== undefined) throw new AnalystError(`there is no organization ${missing}`);
  return refs.map((ref) => rows.find(({ slug }) => slug === ref)?.id ?? ref);
}

export type Added = Readonly<{ granted: Granted; password: string | undefined; notes: readonly string[] }>;

/**
 * Makes the login of an analyst, or gives one that is there more organizations (then `password` is undefined). `keep` is
 * called with the password before anything is committed.
 * @throws AnalystError when the name is taken by another role, or the login may not make roles
 */
export async function addAnalyst(
  client: pg.Client,
  name: string,
  reads: Readonly<{ all: boolean; organizationIds: readonly string[] }>,
  keep: (password: string) => void,
): Promise<Added> {
  checkName(name);
  return transaction(client, async () => {
    const state = await stateOf(client, name);
    if (state === 'other') throw new AnalystError(`${name} is a role of this server already, and no analyst's`);
    if (await leaving(client, name)) {
      throw new AnalystError(`the removal of ${name} has not come to its end: npm run analyst -- remove ${name}`);
    }
    const password = state === 'missing' ? makePassword() : undefined;
    const notes = password === undefined ? [] : await create(client, name, password);
    await admit(client, name);
    const args = { login: name, ...reads, fresh: password !== undefined };
    const result = await asOperator(client, () => callWith(client, 'analyst_grant', args));
    notes.push(...(await leftOpen(client, name)));
    if (password !== undefined) keep(password);
    return { granted: grantResult.parse(result), password, notes };
  });
}

export function listAnalysts(client: pg.Client): Promise<readonly Analyst[]> {
  return transaction(client, async () =>
    listResult.parse(await asOperator(client, () => callWith(client, 'analysts_list', {}))),
  );
}

/** Ends every session of the login, in whatever database. It cannot make new ones: that was taken from it before. */
async function endSessions(client: pg.Client, name: string): Promise<number> {
  const ended = new Set<number>();
  for (const end = Date.now() + END_LIMIT_MS; ; await sleep(20)) {
    const { rows } = await client.query<{ pid: number }>(
      'select pid, pg_terminate_backend(pid) from pg_stat_activity where usename = $1',
      [name],
    );
    if (rows.length === 0) return ended.size;
    for (const { pid } of rows) ended.add(pid);
    if (Date.now() > end) throw new AnalystError(`${name} reads nothing any more, but its sessions do not end`);
  }
}

const revokeResult = z.object({ revoked: z.boolean(), current: z.boolean() });

/** What an earlier login of the name had been given. */
const isLeftover = ({ revoked, current }: z.output<typeof revokeResult>) => revoked && !current;

/**
 * Takes everything from an analyst, ends its sessions and drops the login. Sent again after it was cut off, it goes on.
 * @returns how many sessions were ended; undefined where it was an earlier login of the name that had been given something: that is
 * taken, and the one that has the name now stays
 * @throws AnalystError when there is no such analyst
 */
export async function removeAnalyst(client: pg.Client, name: string): Promise<number | undefined> {
  checkName(name);
  const state = await stateOf(client, name);
  const { rows } = await client.query<{ superuser: boolean }>(
    `select rolsuper as superuser from pg_roles where rolname = current_user`,
  );
  const known = await transaction(client, async () => {
    const revoked = await asOperator(client, () => callWith(client, 'analyst_revoke', { login: name }));
    const result = revokeResult.parse(revoked);
    // From here on nobody comes in, and who is in sees nothing.
    if (state === 'analyst' && !isLeftover(result)) await client.query(`alter role ${id(name)} connection limit 0`);
    return result;
  });
  if (isLeftover(known) || (known.revoked && state !== 'analyst')) return state === 'missing' ? 0 : undefined;
  if (state !== 'analyst') throw new AnalystError(`there is no analyst ${name}`);
  // Only its own role and superusers may end its sessions and drop what it was given.
  if (!rows[0]?.superuser) await client.query(`grant ${id(name)} to current_user`);
  await client.query(`set role ${rows[0]?.superuser ? 'none' : id(name)}`);
  const ended = await endSessions(client, name).finally(() => client.query('reset role'));
  await transaction(client, async () => {
    await client.query(`drop owned by ${id(name)}`);
    await client.query(`drop role ${id(name)}`).catch((error: pg.DatabaseError) => {
      if (error.code !== '2BP01') throw error;
      throw new AnalystError(
        `${name} reads nothing any more and cannot connect, but left ${error.detail}: drop owned by ${id(name)} there, and remove it again`,
      );
    });
  });
  return ended;
}
