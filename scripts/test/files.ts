import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';

/** Long, or of interest only where the short run would hardly be wrong: test/README.md says why each. */
export const SLOW = /^test\/slow\//;
/** The database's own tests, and those of the plans: they run again on the oldest supported Postgres. */
export const ALSO_ON_OLD = /^test\/(sql|slow\/sql\/reporting)\//;
/** Measures its process, or what a process does when it is killed: what ran there before would count. */
export const ALONE = /\/memory\.test\.ts$/;

const secondsSchema = z.record(z.string(), z.number());

/** How long the files took in earlier runs on this machine, by file. */
export function openSeconds(root: string) {
  const file = path.join(root, 'node_modules', '.cache', 'test_seconds.json');
  let known: Record<string, number> = {};
  try {
    known = secondsSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    // None yet.
  }
  /** Of a file that never ran its folder and its size tell something. */
  const expected = (name: string) =>
    known[name] ?? (SLOW.test(name) ? 30 : 0) + statSync(path.join(root, name)).size / 2_000;
  return {
    /** Longest first, so that no long one runs by itself at the end. */
    longestFirst: (files: readonly string[]) => [...files].sort((a, b) => expected(b) - expected(a)),
    keep(seconds: Readonly<Record<string, number>>): void {
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, JSON.stringify({ ...known, ...seconds }));
    },
  };
}
