/** Whether this is `npm test -- --full`. A file that runs by itself has the short run's rounds unless TEST_FULL=1 is set. */
export const FULL = process.env['TEST_FULL'] === '1';

/** How many rounds of made-up input a test takes: enough to find what it looks for, and with --full all. */
export function rounds(count: Readonly<{ short: number; full: number }>): number {
  return FULL ? count.full : count.short;
}
