/** The embedded Postgres cannot be used: one line that says why and, where possible, what to do. */
export class PostgresError extends Error {
  override name = 'PostgresError';
}
