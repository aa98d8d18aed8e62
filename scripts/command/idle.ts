import { CommandError, EXIT } from './errors.ts';

/** The longest time in which no byte of a file moves. What moves may take as long as it takes. */
export const IDLE_MS = 60_000;

export type Idle = Readonly<{
  /** Aborts too when that of the command does. Its reason is a CommandError. */
  signal: AbortSignal;
  moved: () => void;
  clear: () => void;
}>;

/** Ends what moves bytes `ms` after the last `moved`. what: for people, such as "the download of a.csv" */
export function idleLimit(what: string, signal: AbortSignal, ms: number): Idle {
  const controller = new AbortController();
  const end = () => {
    controller.abort(new CommandError(EXIT.unavailable, `${what} stood still for ${ms / 1000} s, and was broken off`));
  };
  const timer = setTimeout(end, ms);
  return {
    signal: AbortSignal.any([signal, controller.signal]),
    moved: () => void timer.refresh(),
    clear: () => clearTimeout(timer),
  };
}
