/** The longest that a statement may take, in queries and decisions alike: Postgres ends it. */
export const STATEMENT_TIMEOUT_MS = 5_000;
/** The longest wait for the result of a statement: reached only where the other end is gone without a word. */
export const RESPONSE_TIMEOUT_MS = 10_000;
/** The longest that a request may take, from its arrival to its response. */
export const REQUEST_TIMEOUT_MS = 30_000;
