import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseEnv } from 'node:util';
import { settings as known } from '../engine/settings.ts';
import { FILE, readOption } from './environment_option.ts';
import { nearest } from './nearest.ts';
import { printError } from './terminal.ts';

export { ENVIRONMENT_FILE_HELP, readEnvironmentFile } from './environment_option.ts';

/** Settings of the worker, and what libraries and programs beside us read. */
const OF_OTHERS =
  /^(?:BUSINESS_RUNNER|AWS|NODE|NPM_CONFIG|SSL|OTEL|LC)_|^PG[A-Z]+$|^(?:HTTPS?|ALL|NO)_PROXY$|^(?:CI|DEBUG|EDITOR|FORCE_COLOR|HOME|LANG|NO_COLOR|PATH|TMPDIR|TZ)$/i;

/** What is wrong with a name that is set in the file; undefined where nothing is. */
export function nameProblem(name: string): string | undefined {
  if (Object.hasOwn(known, name)) return undefined;
  // Names of others are like ours: PGPORT and PORT, AWS_REGION and AWS_PROFILE.
  const meant = nearest(name.toUpperCase(), Object.keys(known), OF_OTHERS.test(name) ? 1 : undefined);
  if (meant !== undefined) return `${name} is no setting, and changes nothing: did you mean ${meant}?`;
  return OF_OTHERS.test(name) ? undefined : `${name} is no setting of this version, and changes nothing`;
}

function warn(file: string, names: readonly string[]): void {
  for (const name of names.toSorted()) {
    const problem = nameProblem(name);
    if (problem !== undefined) printError(`warning: ${path.basename(file)}: ${problem}`);
  }
}

/** Adds these settings to the environment, which wins. Returns the command line without the option. */
export function loadEnvironmentFile(argv: readonly string[], file = FILE): string[] {
  const { argv: rest, isRead } = readOption(argv, file);
  if (!isRead) return rest;
  warn(file, Object.keys(parseEnv(readFileSync(file, 'utf8'))));
  process.loadEnvFile(file);
  return rest;
}
