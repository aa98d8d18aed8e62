import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { makeDatabase } from './clones.ts';
import { TEMPLATE } from './postgres.ts';
import { createWarmConnections, RESET, type WarmConnections } from './warm_connections.ts';

/** What a test file hands in; tap's and node:test's contexts both fit. */
export type TearDown = Readonly<{ teardown: (handler: () => Promise<void>) => unknown }>;

/** A migrated database with nothing in it, and connections that outlive the test. */
export type HandedOn = Readonly<{
  url: string;
  name: string;
  /** As superuser, above row security: to prepare and to inspect. */
  owner: pg.Pool;
  /** A pool of connections, the same at each call with its URL. */
  pool: (url: string, max: number) => pg.Pool;
  warm: WarmConnections;
}>;

type Database = HandedOn &
  Readonly<{
    pools: ReadonlyMap<string, pg.Pool>;
    drop: () => Promise<void>;
    /** The query for the tables that have rows. */
    filledQuery: string;
    /** Those that the template fills. */
    filled: readonly string[];
    /** What `markOf` said of it when it was made. */
    mark: string;
  }>;

/**
 * Databases of files that have ended, as empty as the template. A file takes one rather than a new one: the connections are
 * warm, while those to a new database read its catalogs, compile its functions and plan its statements for half a second.
 */
const idle: Database[] = [];
/** More than a file usually leaves; deleting them would leave the next one bloated tables. */
const MOST_ROWS = 5_000;
/** How long a session that a test has closed may take to end on the server. */
const END_WITHIN_MS = 10_000;

function openPool(url: string, max: number): pg.Pool {
  // Idle connections stay for the next file, and keep no process alive.
  const pool = new pg.Pool({ connectionString: url, max, idleTimeoutMillis: 0, allowExitOnIdle: true });
  // A connection that the server ends at the drop is no failure of the test.
  pool.on('error', () => {});
  return pool;
}

async function column<T>(pool: pg.Pool, name: string, text: string): Promise<T | undefined> {
  const { rows } = await pool.query<{ value: T }>({ name, text });
  return rows[0]?.value;
}

/** The schema, its settings and statistics, and the rows of these tables: changes when any of them does. */
async function markOf(owner: pg.Pool, tables: readonly string[]): Promise<string | undefined> {
  const code = [
    'proc',
    'class',
    'attribute',
    'trigger',
    'policy',
    'constraint',
    'type',
    'index',
    'namespace',
    'rewrite',
  ];
  const other = ['statistic', 'default_acl', 'db_role_setting', 'extension'];
  const counts = [...[...code, ...other].map((name) => `pg_${name}`), ...tables].map(
    (table) => `(select count(*) || ':' || coalesce(max(xmin::text::bigint), 0) from ${table})`,
  );
  return column(owner, 'mark', `select concat_ws(' ', ${counts.join(', ')}) as value`);
}

async function makeFilledQuery(owner: pg.Pool): Promise<string> {
  const { rows } = await owner.query<{ name: string }>(
    `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind = 'r' and n.nspname in ('app', 'graphile_worker') order by 1`,
  );
  const names = rows.map(({ name }) => `case when exists (select from ${name}) then '${name}' end`);
  return `select array_remove(array[${names.join(', ')}], null) as value`;
}

const filledTables = async (owner: pg.Pool, query: string) => (await column<string[]>(owner, 'filled', query)) ?? [];

async function openDatabase(): Promise<Database> {
  const { url, name, drop } = await makeDatabase(TEMPLATE);
  const pools = new Map<string, pg.Pool>();
  const pool = (of: string, max: number) => {
    const known = pools.get(of) ?? openPool(of, max);
    pools.set(of, known);
    return known;
  };
  const owner = pool(url, 4);
  const filledQuery = await makeFilledQuery(owner);
  const filled = await filledTables(owner, filledQuery);
  const mark = (await markOf(owner, filled)) ?? '';
  return { url, name, owner, pool, pools, warm: createWarmConnections(), drop, filledQuery, filled, mark };
}

/** Whether no session is left but the idle ones of ours. */
async function isQuiet({ owner, pools, warm }: Database): Promise<boolean> {
  const all = [...pools.values()];
  if (all.some((pool) => pool.totalCount !== pool.idleCount)) return false;
  const ours = all.reduce((sum, pool) => sum + pool.totalCount, warm.idleCount());
  for (const end = Date.now() + END_WITHIN_MS; Date.now() < end; await delay(5)) {
    const text = `select count(*)::int as value from pg_stat_activity where datname = current_database()`;
    if ((await column<number>(owner, 'sessions', text)) === ours) return true;
  }
  return false;
}

/** Deletes every row that the template has not; whether that was little enough to go on with the database. */
async function empty({ owner, filledQuery, filled }: Database): Promise<boolean> {
  const tables = (await filledTables(owner, filledQuery)).filter((table) => !filled.includes(table));
  // Without triggers and foreign keys, so that the order doesn't matter.
  const deletes = tables.map((table) => `delete from ${table};`).join(' ');
  const results = await owner.query(`set session_replication_role = replica; ${deletes} reset all`);
  const rows = [results].flat().reduce((sum, { rowCount }) => sum + (rowCount ?? 0), 0);
  return rows <= MOST_ROWS;
}

/** Takes back what a test may have set for a session. */
async function resetSessions(pool: pg.Pool): Promise<void> {
  const clients = await Promise.all(Array.from({ length: pool.totalCount }, () => pool.connect()));
  for (const client of clients) {
    await client.query(RESET);
    client.release();
  }
}

async function isReusable(database: Database): Promise<boolean> {
  const { owner, pools, filled, mark } = database;
  if (!(await isQuiet(database)) || !(await empty(database))) return false;
  for (const pool of pools.values()) await resetSessions(pool);
  return (await markOf(owner, filled)) === mark;
}

async function giveBack(database: Database): Promise<void> {
  if (await isReusable(database)) {
    idle.push(database);
    return;
  }
  await Promise.all([...database.pools.values()].map((pool) => pool.end()));
  await database.warm.close();
  await database.drop();
}

/** A migrated database with nothing in it for one test file, given back at its end. */
export async function takeDatabase(t: TearDown): Promise<HandedOn> {
  const database = idle.pop() ?? (await openDatabase());
  t.teardown(() => giveBack(database));
  return database;
}
