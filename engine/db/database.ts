import type { CommonQueryMethods, DatabasePool, DatabasePoolConnection } from 'slonik';
import { createBoundedQueue, createShares, QueueRefusedError } from '../bounded_queue.ts';
import type { Queries } from './call.ts';
import { DatabaseUnavailableError, keepsConnection } from './errors.ts';

/** What the API does with the database: statements, and transactions of several. */
export type Database = Queries &
  Readonly<{
    /** One attempt: repeating is decided by the caller, in one place. */
    transaction<T>(work: (connection: Queries) => Promise<T>): Promise<T>;
    /**
     * The same for the work of one organization, which gets at most three quarters of the connections: whatever its statements
     * wait for, the others have the rest. Further work queues per organization, with the same limits of length and time.
     */
    of(organizationId: string): Database;
    /**
     * The same for the work of one caller in all organizations, beside their shares: a member of several gets at most seven
     * eighths of the connections.
     */
    by(caller: string): Database;
    /** How many statements or transactions run, and wait for a connection. */
    load(): DatabaseLoad;
    end(): Promise<void>;
  }>;

export type DatabaseLoad = Readonly<{ running: number; waiting: number }>;

export type DatabaseOptions = Readonly<{
  /** Opens a pool of `size` connections; called again when one could not be opened or does not respond. */
  open: () => Promise<DatabasePool>;
  size: number;
  /** Statements that may wait for a connection; further ones fail at once: a stalled Postgres must not fill the memory. */
  maxWaiting: number;
  /** Longest wait for a connection; default 10 s. */
  waitTimeoutMs?: number;
  /**
   * Longest wait for a result. It lies above the statement time-out, which Postgres keeps by itself, so that it is
   * reached only by connections whose other end is gone without a word.
   */
  responseTimeoutMs: number;
  /** Takes what calls wake, after their commit; without it, who waits looks again by itself. */
  onWakes?: (wakes: string) => void;
}>;

const WAIT_TIMEOUT_MS = 10_000;
const END_TIMEOUT_MS = 2_000;

/** Whose shares a statement counts in. */
type Shared = Readonly<{ organization?: string; caller?: string }>;

/**
 * How many connections an organization may have at a time, and a caller: more than one organization, for one caller may stand
 * for many, and so none where the pool is too small for a difference.
 */
function sharesOf(size: number): Readonly<{ organization: number; caller: number }> {
  const organization = Math.max(1, Math.floor((size * 3) / 4));
  const caller = size - Math.max(1, Math.floor(size / 8));
  return { organization, caller: caller > organization ? caller : size };
}

type Run = <T>(statement: (methods: CommonQueryMethods) => Promise<T>) => Promise<T>;

function queriesBy(run: Run, wake: Queries['wake']): Queries {
  return {
    one: (query, values) => run((methods) => methods.one(query, values)),
    maybeOne: (query, values) => run((methods) => methods.maybeOne(query, values)),
    any: (query, values) => run((methods) => methods.any(query, values)),
    many: (query, values) => run((methods) => methods.many(query, values)),
    query: (text, values) => run((methods) => methods.query(text, values)),
    wake,
  };
}

type Outcome<T> = Readonly<{ value: T } | { error: unknown }>;

/**
 * slonik closes a connection over which an error came. Refusals are errors too: each would cost a new connection, with all
 * plans to be made again. So the pool never hears of an error that leaves the connection as it was.
 */
async function withReusableConnection<T>(
  pool: DatabasePool,
  work: (connection: DatabasePoolConnection) => Promise<T>,
): Promise<T> {
  const outcome: Outcome<T> = await pool.connect(async (connection) => {
    try {
      return { value: await work(connection) };
    } catch (error) {
      if (!keepsConnection(error)) throw error;
      return { error };
    }
  });
  if ('error' in outcome) throw outcome.error;
  return outcome.value;
}

/**
 * A pool that is opened by its first statement and replaced when it does not respond: the process starts, and recovers,
 * while Postgres is down. The line before the pool is our own, since slonik forgets those who wait for a connection
 * when the connections that were being made for others fail.
 */
export function openDatabase(options: DatabaseOptions): Database {
  const { size, maxWaiting, waitTimeoutMs = WAIT_TIMEOUT_MS, onWakes: wake = () => {} } = options;
  const statements = createBoundedQueue({ concurrency: size, maxWaiting, waitTimeoutMs });
  const atOnce = sharesOf(size);
  const ofOrganizations = createShares({ concurrency: atOnce.organization, maxWaiting, waitTimeoutMs });
  const ofCallers = createShares({ concurrency: atOnce.caller, maxWaiting, waitTimeoutMs });
  let opening: Promise<DatabasePool> | undefined;
  let ended = false;

  function pool(): Promise<DatabasePool> {
    if (ended) return Promise.reject(new DatabaseUnavailableError('the database pool is closed'));
    const attempt: Promise<DatabasePool> = opening ?? options.open();
    if (!opening) attempt.catch(() => forget(attempt));
    opening = attempt;
    return attempt;
  }

  function forget(attempt: Promise<DatabasePool>): void {
    if (opening === attempt) opening = undefined;
  }

  /** Connections that hang would be handed out until TCP gives them up, a quarter of an hour later. */
  function replace(attempt: Promise<DatabasePool>): void {
    if (opening !== attempt) return;
    forget(attempt);
    void endPool(attempt);
  }

  async function endPool(attempt: Promise<DatabasePool>): Promise<void> {
    // Nor must they hold up the end of the process.
    const late = new Promise<void>((resolve) => setTimeout(resolve, END_TIMEOUT_MS).unref());
    await Promise.race([attempt.then((opened) => opened.end()).catch(() => undefined), late]);
  }

  async function timed<T>(work: (connection: DatabasePoolConnection) => Promise<T>): Promise<T> {
    const attempt = pool();
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      replace(attempt);
      late.reject(new DatabaseUnavailableError(`no response within ${options.responseTimeoutMs} ms`));
    }, options.responseTimeoutMs);
    try {
      return await Promise.race([attempt.then((opened) => withReusableConnection(opened, work)), late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  async function run<T>(
    work: (connection: DatabasePoolConnection) => Promise<T>,
    { organization, caller }: Shared,
  ): Promise<T> {
    const inLine = () => statements.run(() => timed(work));
    const ofCaller = () => (caller === undefined ? inLine() : ofCallers.run(caller, inLine));
    try {
      // The organization's line is the outer one: what waits in it takes nothing of a caller who stands for others too.
      return await (organization === undefined ? ofCaller() : ofOrganizations.run(organization, ofCaller));
    } catch (error) {
      if (error instanceof QueueRefusedError) throw new DatabaseUnavailableError(`no connection: ${error.message}`);
      throw error;
    }
  }

  async function transaction<T>(work: (connection: Queries) => Promise<T>, shared: Shared): Promise<T> {
    // What is noted grows within a transaction: the last note has all.
    let wakes = '';
    const result = await run(
      (connection) =>
        connection.transaction((inside) => {
          const note = (noted: string) => {
            wakes = noted;
          };
          return work(queriesBy((statement) => statement(inside), note));
        }, 0),
      shared,
    );
    if (wakes) wake(wakes);
    return result;
  }

  function databaseOf(shared: Shared): Database {
    return {
      ...queriesBy((statement) => run(statement, shared), wake),
      transaction: (work) => transaction(work, shared),
      of: (organizationId) => databaseOf({ ...shared, organization: organizationId.toLowerCase() }),
      by: (caller) => databaseOf({ ...shared, caller }),
      load: () => ({
        running: statements.running(),
        waiting: statements.waiting() + ofOrganizations.waiting() + ofCallers.waiting(),
      }),
      async end() {
        ended = true;
        if (opening) await endPool(opening);
      },
    };
  }

  return databaseOf({});
}
