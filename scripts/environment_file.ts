import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseEnv } from 'node:util';
import { settings as known } from '../engine/config.ts';
import { FILE, readOption } from './environment_option.ts';
import { printError } from './terminal.ts';

export { ENVIRONMENT_FILE_HELP, readEnvironmentFile } from './environment_option.ts';

/** Settings of the worker, and what libraries and programs beside us read. */
const OF_OTHERS =
  /^(?:BUSINESS_RUNNER|AWS|NODE|NPM_CONFIG|SSL|OTEL|LC)_|^PG[A-Z]+$|^(?:HTTPS?|ALL|NO)_PROXY$|^(?:CI|DEBUG|EDITOR|FORCE_COLOR|HOME|LANG|NO_COLOR|PATH|TMPDIR|TZ)$/i;

/** How many characters have to be typed, left out or changed to make one word of the other. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      next.push(Math.min((row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1, (row[j] ?? 0) + (letter === other ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** What is wrong with a name that is set in the file; undefined where nothing is. */
export function nameProblem(name: string): string | undefined {
  if (Object.hasOwn(known, name)) return undefined;
  const [nearest] = Object.keys(known)
    .map((setting) => ({ setting, away: distance(name.toUpperCase(), setting) }))
    .sort((one, other) => one.away - other.away);
  // Names of others are like ours: PGPORT and PORT, AWS_REGION and AWS_PROFILE.
  const near = nearest && nearest.away <= (OF_OTHERS.test(name) ? 1 : Math.max(2, name.length / 3));
  if (near) return `${name} is no setting, and changes nothing: did you mean ${nearest.setting}?`;
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
