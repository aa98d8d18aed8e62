import { existsSync, globSync, statSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

export type Options = Readonly<{
  full: boolean;
  watch: boolean;
  help: boolean;
  /** The files that were named; undefined: all that the run has. */
  chosen: readonly string[] | undefined;
}>;

/** What was asked for cannot be done; the message says why. */
export class UsageError extends Error {
  override name = 'UsageError';
}

export const USAGE = `npm test: type check, lint, and the tests that tell whether a change is right, in under six minutes.

  npm test                                 all of that, against a Postgres that it starts itself
  npm test -- --full                       everything: also what is in test/slow, more rounds of the tests that make up
                                           their input, and the database's own tests on Postgres 15 where the machine has it
  npm test -- test/sql/tasks retry …       only these files: a file, a folder, or a part of the path; no type check and lint
  npm test -- --watch retry …              the same, and again whenever a file of the repository changes
  npm test -- --help                       this text

One file also runs by itself, with a Postgres of its own: npx node test/sql/tasks/retry.test.ts
The last line is "N passed, N failed". test/README.md says how it works.
`;

/** All test files below the root of the repository, by name. */
export function testFiles(root: string): string[] {
  return globSync('test/**/*.test.ts', { cwd: root }).sort();
}

/** The files that a word names: a file, all below a folder, or all whose path has it. */
function filesOf(word: string, root: string, from: string): string[] {
  const named = path.resolve(from, word);
  const relative = path.relative(root, named);
  if (existsSync(named) && statSync(named).isFile()) return [relative];
  const all = testFiles(root);
  const below = all.filter((file) => file.startsWith(`${relative}/`));
  const found = below.length > 0 ? below : all.filter((file) => file.includes(word));
  if (found.length === 0) throw new UsageError(`no test file, and no folder of them, has ${word} in its path`);
  return found;
}

/** @throws UsageError that names the word that means nothing here; what parseArgs throws */
export function readOptions(args: readonly string[], root: string, from = process.cwd()): Options {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { full: { type: 'boolean' }, watch: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
  });
  const { full = false, watch = false, help = false } = values;
  if (watch && positionals.length === 0) throw new UsageError('--watch goes with files: npm test -- --watch retry');
  const chosen = [...new Set(positionals.flatMap((word) => filesOf(word, root, from)))];
  return { full, watch, help, chosen: positionals.length > 0 ? chosen : undefined };
}
