import { countPresses } from '../presses.ts';
import { CommandError, EXIT } from './errors.ts';

/** As long as a timer lasts. */
export const MAX_TIMEOUT_S = 2_000_000;

/** What ends a command before it is done: Ctrl-C, or the end of its time. */
export type Stop = Readonly<{
  /** Its reason is a CommandError. */
  signal: AbortSignal;
  /** Printed then: what continues without this command, and how to come back to it. */
  goesOn: (what: string) => void;
  /** Waits no longer than this. */
  after: (seconds: number) => void;
  interrupt: () => void;
}>;

/** A question that only `yes` affirms; false too when the signal ends it. */
export type Ask = (question: string, signal: AbortSignal) => Promise<boolean>;

export function createStop(): Stop {
  const controller = new AbortController();
  let what = 'interrupted';
  return {
    signal: controller.signal,
    goesOn(text) {
      what = text;
    },
    after(seconds) {
      const end = () => controller.abort(new CommandError(EXIT.timedOut, `not over after ${seconds} s: ${what}`));
      setTimeout(end, seconds * 1000).unref();
    },
    interrupt: () => controller.abort(new CommandError(EXIT.interrupted, what)),
  };
}

/** The same with the signals of this process. A second one does not wait. */
export function openStop(): Stop {
  const stop = createStop();
  const press = countPresses();
  process.once('SIGTERM', () => {
    // It ends by the signal, after what it has begun is cleared up.
    process.once('exit', () => process.kill(process.pid, 'SIGTERM'));
    stop.interrupt();
  });
  process.on('SIGINT', () => {
    if (press() > 1) process.exit(EXIT.interrupted);
    stop.interrupt();
  });
  return stop;
}
