// Apart from scripts/environment_file.ts, because a worker reads the file without knowing the settings of the service.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseEnv } from 'node:util';

export const FILE = path.resolve(import.meta.dirname, '..', '.env');
const OPTION = '--no-env-file';

/** The line of this option in a text of help. */
export const ENVIRONMENT_FILE_HELP = `${OPTION}  does not read the settings in .env`;

/** The command line without the option, and whether there is a file to read. What follows `--` is for another program. */
export function readOption(argv: readonly string[], file: string): { argv: string[]; isRead: boolean } {
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
