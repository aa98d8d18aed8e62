import type { CommonQueryMethods, DatabasePool, DatabaseTransactionConnection } from 'slonik';
import type { Queries } from './call.ts';

/** What the API does with the database: statements, and transactions of several. */
export type Database = Queries &
  Readonly<{
    /** One attempt: repeating is decided by the caller, in one place. */
    transaction<T>(work: (connection: DatabaseTransactionConnection) => Promise<T>): Promise<T>;
    /** Connections and who waits for one; null before the first statement. */
    load(): Promise<DatabaseLoad | null>;
    end(): Promise<void>;
  }>;

export type DatabaseLoad = Readonly<{ busy: number; idle: number; waiting: number }>;

/** Postgres cannot take the call now; nothing was sent. */
export class DatabaseUnavailableError extends Error {
  override name = 'DatabaseUnavailableError';
}

export type DatabaseOptions = Readonly<{
  /** Opens the pool; called again after a failure, at the next statement. */
  open: () => Promise<DatabasePool>;
  /** Statements that may wait for a connection; further ones fail at once, so that a stalled Postgres cannot fill the memory. */
  maxWaiting: number;
  /**
   * Longest wait for an answer, in ms. Postgres itself ends long statements; this covers a connection whose other
   * end is gone without a word.
   */
  answerTimeoutMs: number;
}>;

const END_TIMEOUT_MS = 2_000;

/** A pool that is opened by its first statement: the process starts, and recovers, while Postgres is down. */
export function openDatabase(options: DatabaseOptions): Database {
  let opening: Promise<DatabasePool> | undefined;
  let ended = false;

  function pool(): Promise<DatabasePool> {
    if (ended) return Promise.reject(new DatabaseUnavailableError('the database pool is closed'));
    opening ??= options.open().catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  }

  async function run<T>(work: (pool: DatabasePool) => Promise<T>): Promise<T> {
    const opened = await pool();
    if (opened.state().waitingClients >= options.maxWaiting) {
      throw new DatabaseUnavailableError('too many statements wait for a connection');
    }
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => late.reject(new DatabaseUnavailableError(`no answer within ${options.answerTimeoutMs} ms`)),
      options.answerTimeoutMs,
    );
    try {
      return await Promise.race([work(opened), late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  const one: CommonQueryMethods['one'] = (query, values) => run((opened) => opened.one(query, values));
  const maybeOne: CommonQueryMethods['maybeOne'] = (query, values) => run((opened) => opened.maybeOne(query, values));
  const any: CommonQueryMethods['any'] = (query, values) => run((opened) => opened.any(query, values));
  const many: CommonQueryMethods['many'] = (query, values) => run((opened) => opened.many(query, values));
  const query: CommonQueryMethods['query'] = (text, values) => run((opened) => opened.query(text, values));

  return {
    one,
    maybeOne,
    any,
    many,
    query,
    async load() {
      const state = (await opening?.catch(() => undefined))?.state();
      if (!state) return null;
      return { busy: state.acquiredConnections, idle: state.idleConnections, waiting: state.waitingClients };
    },
    transaction: (work) => run((opened) => opened.transaction(work, 0)),
    async end() {
      ended = true;
      // Connections that do not answer must not hold up the end of the process.
      const late = new Promise<void>((resolve) => setTimeout(resolve, END_TIMEOUT_MS).unref());
      await Promise.race([opening?.then((opened) => opened.end()).catch(() => undefined), late]);
    },
  };
}
