import { type DestinationStream, type Logger, pino } from 'pino';
import type { Config } from './config.ts';
import { type LogTrouble, openLogOutput } from './log_output.ts';

const REDACTED = '[redacted]';

// Worked on the finished line, so that a secret is found at any depth, inside messages and stacks too. Repetitions are
// bounded where one could start inside another: a long line must not cost more than its length.
const secrets: readonly (readonly [RegExp, string])[] = [
  [/\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi, `$1 ${REDACTED}`],
  [
    /("(?:authorization|cookie|set-cookie|x-lease-token|[a-z]{0,40}(?:password|secret|token)s?)"\s*:\s*)"(?:[^"\\]|\\.)*"/gi,
    `$1"${REDACTED}"`,
  ],
];

// A word up to its @, whole: looked for from each address in it, one without @ would be read to its end every time.
const upToAt = /(?<![^\s@"\\])[^\s@"\\]+@/g;
const beforePassword = /[a-z][a-z0-9+.-]{0,20}:\/\/[^:/]*:/i;

function withoutPasswords(line: string): string {
  if (!line.includes('://')) return line;
  return line.replace(upToAt, (word) => {
    const start = beforePassword.exec(word);
    return start ? `${word.slice(0, start.index + start[0].length)}${REDACTED}@` : word;
  });
}

/** A log line without credentials: headers, lease and execution tokens, passwords in URLs. */
export function redact(line: string): string {
  return secrets.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), withoutPasswords(line));
}

type LoggedError = { type: string; message: string; stack: string | undefined; [field: string]: unknown };

// Of a database error; not its detail, nor the values and rows that slonik adds: they hold what users wrote.
const errorFields = [
  'code',
  'constraint',
  'table',
  'column',
  'routine',
  'where',
  'syscall',
  'address',
  'port',
] as const;

/** What is logged of an error: where and why, without the data at hand. */
export function loggedError(error: unknown, depth = 0): LoggedError | unknown {
  if (!(error instanceof Error)) return error;
  const fields = Object.entries(error).filter(([name]) => errorFields.some((field) => field === name));
  return {
    type: error.constructor.name,
    message: error.message,
    stack: error.stack,
    ...Object.fromEntries(fields),
    ...(error.cause !== undefined && depth < 3 ? { cause: loggedError(error.cause, depth + 1) } : {}),
  };
}

export type LogOptions = Readonly<{
  /** Default: standard output. */
  destination?: DestinationStream;
  /** Told when standard output takes no lines, and when it does again. */
  onTrouble?: (trouble: LogTrouble) => void;
}>;

/** JSON lines on standard output. What is left is written when the process exits. */
export function createLogger(level: Config['logLevel'], name: string, options: LogOptions = {}): Logger {
  const { onTrouble = () => {} } = options;
  const destination =
    options.destination ??
    openLogOutput(1, {
      onTrouble(trouble) {
        if (trouble.reason === null && trouble.leftOut > 0) {
          log.warn({ leftOut: trouble.leftOut }, 'log lines were left out: nothing could be written');
        }
        onTrouble(trouble);
      },
    });
  const log = pino(
    {
      level,
      name,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label: string) => ({ level: label }) },
      serializers: { err: (error: unknown) => loggedError(error) },
      hooks: { streamWrite: redact },
    },
    destination,
  );
  return log;
}

const THROTTLE_MS = 10_000;
const MAX_KINDS = 100;

/**
 * Decides whether an error of this kind is logged now: the first is, then one every ten seconds with the number of
 * those left out. So a database that is down for an hour costs a few hundred lines, whatever the traffic.
 */
export function createThrottle(now: () => number = Date.now) {
  const kinds = new Map<string, { since: number; leftOut: number }>();
  return (kind: string): { log: boolean; leftOut: number } => {
    const known = kinds.get(kind);
    if (known && now() - known.since < THROTTLE_MS) {
      known.leftOut += 1;
      return { log: false, leftOut: known.leftOut };
    }
    // Kinds come from messages: a bound, so that ever new ones do not gather.
    if (!known && kinds.size >= MAX_KINDS) kinds.clear();
    kinds.set(kind, { since: now(), leftOut: 0 });
    return { log: true, leftOut: known?.leftOut ?? 0 };
  };
}

export type Throttle = ReturnType<typeof createThrottle>;

/** Logs at most one error of a kind every ten seconds. */
export function logThrottled(log: Logger, throttle: Throttle, message: string, error: unknown): void {
  const text = error instanceof Error ? error.message : String(error);
  const { log: now, leftOut } = throttle(`${message} ${text}`);
  if (now) log.error({ err: error, ...(leftOut ? { leftOut } : {}) }, message);
}
