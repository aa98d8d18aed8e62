import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { findPostgresError, raisedProblem } from '../../engine/db/errors.ts';
import { functionQuery } from '../../engine/db/function_text.ts';
import { type PoolOptions, roleUrl } from '../../engine/db/pool.ts';
import { type Issue, problemSchema } from '../../engine/db/problem.ts';
import type { Arguments, Exactly, ScalarFunctionName } from '../../engine/db/signatures.ts';
import type { TearDown } from './database.ts';
import type { Sql } from './sql.ts';

export { openSql, type Sql } from './sql.ts';

export type Connection = Readonly<{
  query: (text: string, values: unknown[]) => Promise<{ rows: Record<string, unknown>[] }>;
}>;

export type JsonObject = Readonly<Record<string, unknown>>;

/** What a transition refused, by app.fail (then it changed nothing) or by its result (then it changed state). */
export class Refusal extends Error {
  override name = 'Refusal';
  readonly status: number;
  readonly code: string;
  readonly reason: string | undefined;
  readonly issues: readonly Issue[];
  readonly raised: boolean;

  constructor(
    problem: { status: number; code: string; message: string; issues?: readonly Issue[] | undefined },
    raised: boolean,
  ) {
    super(problem.message);
    this.status = problem.status;
    this.code = problem.code;
    this.issues = problem.issues ?? [];
    this.reason = this.issues[0]?.code;
    this.raised = raised;
  }
}

type Statement = Connection['query'];

/**
 * Postgres tells of an error before the transaction lets its locks go, and a pull skips what is locked. An empty statement
 * over the same connection returns after that.
 */
async function settled(query: Statement, ...statement: Parameters<Statement>): ReturnType<Statement> {
  try {
    return await query(...statement);
  } catch (error) {
    await query('', []).catch(() => {});
    throw error;
  }
}

async function send(connection: Connection, ...statement: Parameters<Statement>): ReturnType<Statement> {
  if (!(connection instanceof pg.Pool)) return settled((text, values) => connection.query(text, values), ...statement);
  const client = await connection.connect();
  try {
    return await settled((text, values) => client.query(text, values), ...statement);
  } finally {
    client.release();
  }
}

/** `select app.<name>(…)`, as one statement: its result, or a Refusal; other errors are Postgres's own. */
export function transition<N extends ScalarFunctionName, A extends Arguments<N>>(
  connection: Connection,
  name: N,
  args: Exactly<A, Arguments<N>>,
): Promise<JsonObject> {
  return attempt(connection, functionQuery(name, args));
}

/** The arguments of a function that a fixture does not fill in itself; nothing at all where there are none. */
export type Given<N extends ScalarFunctionName, Filled extends string> =
  Record<never, never> extends Omit<Arguments<N>, Filled>
    ? [args?: Omit<Arguments<N>, Filled>]
    : [args: Omit<Arguments<N>, Filled>];

/** `transition` for fixtures that fill in some of the arguments: their own types say that the rest is there. */
export function fixtureTransition(
  connection: Connection,
  name: ScalarFunctionName,
  args: Readonly<Record<string, unknown>>,
): Promise<JsonObject> {
  return attempt(connection, functionQuery<typeof name, never>(name, args as never));
}

async function attempt(
  connection: Connection,
  { text, values }: ReturnType<typeof functionQuery>,
): Promise<JsonObject> {
  try {
    const { rows } = await send(connection, text, values);
    const result = rows[0]?.['result'] as JsonObject;
    const problem = problemSchema.safeParse(result['problem']);
    if (problem.success) throw new Refusal(problem.data, false);
    return result;
  } catch (error) {
    const found = findPostgresError(error);
    const problem = found && raisedProblem(found);
    throw problem ? new Refusal(problem, true) : error;
  }
}

/** The refusal of a transition that has to refuse. */
export async function refusal(work: Promise<unknown>): Promise<Refusal> {
  try {
    await work;
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error('the transition was expected to refuse, and did not');
}

/** One connection whose transaction the test holds open, to decide the order of two at once. */
export type Session = Connection &
  Readonly<{
    begin: () => Promise<void>;
    commit: () => Promise<void>;
    rollback: () => Promise<void>;
    /** Resolves when its statement waits for a lock of another transaction. */
    waits: () => Promise<void>;
  }>;

const WAIT_LIMIT_MS = 30_000;

export async function openSession(
  t: TearDown,
  sql: Sql,
  role: PoolOptions['role'] | 'owner' = 'runner_api',
): Promise<Session> {
  const url = role === 'owner' ? sql.url : roleUrl(sql.url, { role });
  const client = new pg.Client({ connectionString: url, application_name: `session ${randomUUID()}` });
  client.on('error', () => {});
  await client.connect();
  t.teardown(() => client.end());
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  const pid = rows[0]?.pid;
  const run = async (text: string) => void (await client.query(text));
  return {
    query: (text, values) => client.query(text, values),
    begin: () => run('begin'),
    commit: () => run('commit'),
    rollback: () => run('rollback'),
    async waits() {
      const end = Date.now() + WAIT_LIMIT_MS;
      while (Date.now() < end) {
        const seen = await sql.owner.query<{ waits: boolean }>(
          `select cardinality(pg_blocking_pids(pid)) > 0 as waits from pg_stat_activity where pid = $1`,
          [pid],
        );
        if (seen.rows[0]?.waits) return;
        await delay(5);
      }
      throw new Error('the session does not wait for a lock');
    },
  };
}
