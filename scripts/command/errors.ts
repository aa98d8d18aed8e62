/** How the command ends (`--help` says the same); the numbers from 64 on are those of sysexits. */
export const EXIT = {
  done: 0,
  /** The API refused, or something else went wrong. */
  refused: 1,
  /** What was waited for ended without success. */
  failed: 2,
  /** What was called is proposed, and not done yet. */
  proposed: 3,
  usage: 64,
  /** A file is not what it should be. */
  data: 65,
  notFound: 66,
  unavailable: 69,
  timedOut: 75,
  forbidden: 77,
  interrupted: 130,
} as const;
export type Exit = (typeof EXIT)[keyof typeof EXIT];

/** Ends the command; the message is one line, for the person who called it. */
export class CommandError extends Error {
  override name = 'CommandError';
  readonly exit: Exit;

  constructor(exit: Exit, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exit = exit;
  }
}

/** A wrong command line: its message names the help that explains the command. */
export class UsageError extends CommandError {
  override name = 'UsageError';
}

export function usageError(message: string): UsageError {
  return new UsageError(EXIT.usage, message);
}
