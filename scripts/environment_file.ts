import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseEnv } from 'node:util';

const FILE = path.resolve(import.meta.dirname, '..', '.env');
const OPTION = '--no-env-file';

/** The line of this option in a text of help. */
export const ENVIRONMENT_FILE_HELP = `${OPTION}  does not read the settings in .env`;

/** The command line without the option, and whether there is a file to read. What follows `--` is for another program. */
function readOption(argv: readonly string[], file: string): { argv: string[]; isRead: boolean } {
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length;
  return {
    argv: argv.filter((argument, index) => index >= end || argument !== OPTION),
    isRead: !argv.slice(0, end).includes(OPTION) && existsSync(file),
  };
}

/** The settings in `.env`, none without it or with `--no-env-file`, and the command line without that option. */
export function readEnvironmentFile(argv: readonly string[], file = FILE) {
  const { argv: rest, isRead } = readOption(argv, file);
  const settings: NodeJS.ProcessEnv = isRead ? parseEnv(readFileSync(file, 'utf8')) : {};
  return { argv: rest, settings };
}

/** Adds these settings to the environment, which wins. Returns the command line without the option. */
export function loadEnvironmentFile(argv: readonly string[], file = FILE): string[] {
  const { argv: rest, isRead } = readOption(argv, file);
  if (isRead) process.loadEnvFile(file);
  return rest;
}
