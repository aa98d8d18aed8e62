import { createPool, type DatabasePool, type Interceptor, type QueryResultRow, SchemaValidationError } from 'slonik';
import { SERVER_LIMITS } from './abandoned.ts';
import { type Connections, pgDriver } from './driver.ts';

/**
 * Every row is checked and converted by the zod schema of its query; slonik alone would not do it. Synchronous: for its
 * asynchronous form slonik makes a queue a query and a promise a row.
 */
const validateRows: Interceptor = {
  name: 'validate-rows',
  transformRow(context, query, row) {
    if (!context.resultParser) return row;
    const result = context.resultParser['~standard'].validate(row);
    if (result instanceof Promise) throw new TypeError('the schema of a row is synchronous');
    if (result.issues) throw new SchemaValidationError(query, row as never, result.issues as never);
    return result.value as QueryResultRow;
  },
};

export type PoolOptions = Readonly<{
  /** The login role whose rights the connections have; the URL's user must be it or be allowed to become it. */
  role: 'runner_api' | 'runner_jobs' | 'runner_admin';
  size: number;
  applicationName?: string;
  /** Calls are prepared once a connection; its server must be Postgres itself, or a pooler of sessions. */
  prepare?: boolean;
  /** Longest statement, in ms; then the caller sees `service_unavailable`. */
  statementTimeoutMs?: number;
  /** Longest wait for a lock, in ms. */
  lockTimeoutMs?: number;
  /** Further settings of the connections, by their names in Postgres. */
  settings?: Readonly<Record<string, string>>;
  /** As of the driver. */
  connections?: Connections;
}>;

/** The URL with the role and time-outs as start-up options: set at connect, so that nothing is ever set for a session later. */
export function roleUrl(
  url: string,
  options: Pick<PoolOptions, 'role' | 'applicationName' | 'statementTimeoutMs' | 'lockTimeoutMs' | 'settings'>,
): string {
  const parsed = new URL(url);
  const given = parsed.searchParams.get('options');
  const ours = {
    role: options.role,
    statement_timeout: options.statementTimeoutMs ?? 30_000,
    lock_timeout: options.lockTimeoutMs ?? 10_000,
    timezone: 'UTC',
    ...SERVER_LIMITS,
    ...options.settings,
  };
  const settings = Object.entries(ours).map(([name, value]) => `-c ${name}=${value}`);
  parsed.searchParams.set('options', [given, ...settings].filter(Boolean).join(' '));
  if (options.applicationName) parsed.searchParams.set('application_name', options.applicationName);
  return parsed.href;
}

/** A pool of connections with the rights of `role`; nothing is set for a session, so nothing is reset on release. */
export async function openPool(url: string, options: PoolOptions): Promise<DatabasePool> {
  return createPool(roleUrl(url, options), {
    interceptors: [validateRows],
    maximumPoolSize: options.size,
    connectionTimeout: 5_000,
    connectionRetryLimit: 0,
    // Repeating is decided in one place, where it is known what may be repeated.
    queryRetryLimit: 0,
    resetConnection: async () => {},
    statementTimeout: 'DISABLE_TIMEOUT',
    idleInTransactionSessionTimeout: 'DISABLE_TIMEOUT',
    idleTimeout: 60_000,
    captureStackTrace: false,
    driverFactory: pgDriver({ prepare: options.prepare ?? false, connections: options.connections }),
  });
}
