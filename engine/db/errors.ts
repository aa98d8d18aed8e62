import { z } from 'zod';
import { issueSchema, Problem } from './problem.ts';

/** Postgres cannot take the call now. */
export class DatabaseUnavailableError extends Error {
  override name = 'DatabaseUnavailableError';
}

/** The fields of a Postgres error that matter here. */
export type PostgresError = Readonly<{
  code: string;
  message: string;
  detail: string | undefined;
  hint: string | undefined;
}>;

const postgresError = z.object({
  code: z.string().regex(/^[0-9A-Z]{5}$/),
  message: z.string(),
  severity: z.string(),
  detail: z.string().optional(),
  hint: z.string().optional(),
});

const coded = z.object({ code: z.string() });

/** The error and what caused it, outermost first; slonik wraps some errors of the driver. */
function* chain(error: unknown): Generator<unknown> {
  let current = error;
  for (let depth = 0; depth < 8 && current !== undefined && current !== null; depth += 1) {
    yield current;
    current = current instanceof Error ? current.cause : undefined;
  }
}

/** The error of Postgres in `error` or its causes, if it is one. */
export function findPostgresError(error: unknown): PostgresError | undefined {
  for (const candidate of chain(error)) {
    // The driver's error is an instance with own fields; zod reads them from it.
    const parsed = postgresError.safeParse(candidate);
    if (parsed.success) {
      const { code, message, detail, hint } = parsed.data;
      return { code, message, detail, hint };
    }
  }
  return undefined;
}

function parseIssues(text: string | undefined) {
  if (!text) return undefined;
  try {
    return z.array(issueSchema).safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** `app.fail`: SQLSTATE `RN` + HTTP status, the text as message, the machine code as detail, issues as JSON in the hint. */
export function raisedProblem(error: PostgresError): Problem | undefined {
  const status = /^RN([45]\d\d)$/.exec(error.code)?.[1];
  if (!status) return undefined;
  return new Problem(Number(status), error.detail || 'request_failed', error.message, parseIssues(error.hint));
}

const transient = new Set(['55P03', '40P01', '40001']);

/** Lock time-out, deadlock, serialization failure: the statement changed nothing and may succeed when sent again. */
export function isTransient(error: unknown): boolean {
  return transient.has(findPostgresError(error)?.code ?? '');
}

/** The time-out of one statement: a fault of what it worked on rather than of the database. */
export function isTooSlow(error: unknown): boolean {
  return findPostgresError(error)?.code === '57014';
}

// Classes: 08 connection, 28 credentials, 3D database missing, 53 resources (connections, disk, memory), 57 operator
// intervention (shutdown, statement time-out). 25006: writes on a standby during a failover. 25P03: idle in transaction.
const unavailableStates = /^(08|28|3D|53|57|25006|25P03)/;
const networkCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
]);
const slonikConnection = new Set([
  'BackendTerminatedError',
  'BackendTerminatedUnexpectedlyError',
  'ConnectionError',
  'IdleTransactionTimeoutError',
  'StatementCancelledError',
  'StatementTimeoutError',
]);
const driverMessages =
  /connection terminated|timeout exceeded when trying to connect|connection timeout|query read timeout|client was closed/i;

/** Postgres is unreachable, too busy or too slow. */
export function isUnavailable(error: unknown): boolean {
  for (const candidate of chain(error)) {
    if (candidate instanceof DatabaseUnavailableError) return true;
    if (!(candidate instanceof Error)) continue;
    if (slonikConnection.has(candidate.constructor.name) || slonikConnection.has(candidate.name)) return true;
    if (driverMessages.test(candidate.message)) return true;
    const code = coded.safeParse(candidate).data?.code ?? '';
    if (networkCodes.has(code)) return true;
    if (postgresError.safeParse(candidate).success && (unavailableStates.test(code) || transient.has(code)))
      return true;
    // Several addresses of one host name failed.
    if (candidate instanceof AggregateError && candidate.errors.some((one) => isUnavailable(one))) return true;
  }
  return false;
}

// What ends a connection, or says that something is wrong with it or its server. 57014, the statement time-out, does not.
const endingStates = /^(08|25|28|3D|53|57P|58|F0|XX)/;
const refusals = new Set(['NotFoundError', 'DataIntegrityError', 'SchemaValidationError']);

/** The connection that the error came over goes on: Postgres refused a statement, or its result is not what was asked for. */
export function keepsConnection(error: unknown): boolean {
  const refused = findPostgresError(error);
  if (refused) return !endingStates.test(refused.code);
  return error instanceof Problem || (error instanceof Error && refusals.has(error.constructor.name));
}

/** Text that Postgres cannot hold: NUL and broken encodings. */
export function isUntranslatable(error: unknown): boolean {
  const code = findPostgresError(error)?.code;
  return code === '22021' || code === '22P05';
}
