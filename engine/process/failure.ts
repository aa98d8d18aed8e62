import { ConfigError } from '../config.ts';
import { NotMigratedError } from '../db/migrated.ts';
import { writeOutput } from './output.ts';

const EX_CONFIG = 78;

/**
 * Ends a process that cannot start, or go on: with one line where a person has to change something, else with the stack. Exit
 * status 78 tells the supervisor that no restart helps.
 */
export function endProcess(error: unknown): never {
  const isConfig = error instanceof ConfigError || error instanceof NotMigratedError;
  const isPortTaken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
  const text = error instanceof Error ? (isConfig || isPortTaken ? error.message : error.stack) : String(error);
  writeOutput(process.stderr, `${text}\n`);
  process.exit(isConfig ? EX_CONFIG : 1);
}
