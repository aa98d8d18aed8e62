import { countPresses } from '../presses.ts';

export const INTERRUPTED = 130;

/** Ends the demo between two steps; a second Ctrl-C does not wait. */
export function interruption(): AbortSignal {
  const interrupted = new AbortController();
  const press = countPresses();
  process.on('SIGINT', () => {
    if (press() > 1) process.exit(INTERRUPTED);
    interrupted.abort();
  });
  process.on('SIGTERM', () => interrupted.abort());
  return interrupted.signal;
}
