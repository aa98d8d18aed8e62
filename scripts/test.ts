import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { environmentWith } from '../engine/config.ts';
import { writeOutput } from '../engine/process/output.ts';
import { settings } from '../engine/settings.ts';
import { startTestPostgres, type TestServer } from '../test/support/postgres.ts';
import { ALONE, ALSO_ON_OLD, openSeconds, SLOW } from './test/files.ts';
import { type Options, readOptions, testFiles, USAGE, UsageError } from './test/options.ts';
import { describe, folders, skips, slowest, totals } from './test/report.ts';
import { runFiles } from './test/schedule.ts';
import type { FileResult } from './test/test_process.ts';
import { watch } from './test/watch.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
/** The oldest supported version, where the machine has it. */
const OLD_POSTGRES = '/usr/lib/postgresql/15/bin';

function print(text: string): void {
  writeOutput(process.stdout, `${text}\n`);
}

/** Settings of the person who tests must not reach the tests. */
function testEnvironment(server: TestServer, bin: string | undefined, full: boolean): NodeJS.ProcessEnv {
  const none = Object.fromEntries(Object.keys(settings).map((name) => [name, undefined]));
  return {
    ...environmentWith(none),
    TEST_DATABASE_URL: server.url,
    TEST_POSTGRES_BIN: bin,
    TEST_FULL: full ? '1' : undefined,
    // Every process loads much of the same code.
    NODE_COMPILE_CACHE: path.join(ROOT, 'node_modules', '.cache', 'compiled'),
    FORCE_COLOR: undefined,
    NO_COLOR: '1',
    // What files set that run by themselves: one may leave the environment to the next as it found it.
    AWS_PROFILE: undefined,
    AWS_EC2_METADATA_DISABLED: 'true',
    GRAPHILE_ENV: 'production',
  };
}

async function check(name: string, command: string, args: readonly string[]): Promise<boolean> {
  try {
    await promisify(execFile)(path.join(ROOT, 'node_modules', '.bin', command), args, {
      cwd: ROOT,
      maxBuffer: 64 * 1024 * 1024,
    });
    print(`✓ ${name}`);
    return true;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    print(`✗ ${name} FAILED\n${stdout}${stderr}`.trimEnd());
    return false;
  }
}

type Run = Readonly<{ files: readonly string[]; full: boolean; label: string; bin?: string }>;

/** Runs files against one server that lives as long as they do. */
async function runOn({ files, full, label, bin }: Run): Promise<FileResult[]> {
  if (files.length === 0) return [];
  const server = await startTestPostgres(bin);
  print(`Postgres ${server.version}${bin ? ` of ${bin}` : ' (embedded)'}`);
  const interrupted = () => void server.stop().then(() => process.exit(130));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupted);
  const results: FileResult[] = [];
  const seconds = openSeconds(ROOT);
  try {
    await runFiles({
      files: seconds.longestFirst(files),
      alone: (file) => ALONE.test(file),
      cwd: ROOT,
      env: testEnvironment(server, bin, full),
      onResult(result) {
        print(describe(result, label));
        results.push({ ...result, file: `${result.file}${label}` });
      },
    });
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupted);
    await server.stop();
  }
  seconds.keep(Object.fromEntries(results.map((result) => [result.file, result.seconds])));
  return results;
}

/** One run of what the options say; whether all is well. */
async function runOnce({ full, chosen }: Options): Promise<boolean> {
  const checks =
    chosen === undefined
      ? [check('type check', 'tsc', ['--noEmit']), check('lint and format', 'biome', ['check', '.'])]
      : [];
  const files = chosen ?? testFiles(ROOT).filter((file) => full || !SLOW.test(file));
  const results = await runOn({ files, full, label: '' });
  if (full && existsSync(path.join(OLD_POSTGRES, 'postgres'))) {
    const again = files.filter((file) => ALSO_ON_OLD.test(file));
    // What differs between versions shows in the first rounds.
    results.push(...(await runOn({ files: again, full: false, label: ' (Postgres 15)', bin: OLD_POSTGRES })));
  }
  const failedChecks = (await Promise.all(checks)).filter((ok) => !ok).length;
  if (results.length > 1) print(`\n${slowest(results)}\n\n${folders(results, full)}`);
  const skipped = skips(results);
  if (skipped !== '') print(`\n${skipped}`);
  const { passed, failed } = totals(results, failedChecks);
  print(`\n${passed} passed, ${failed} failed`);
  return failed === 0 && passed > 0;
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2), ROOT);
  if (options.help) return print(USAGE);
  if (options.watch) return watch(ROOT, () => runOnce(options), print);
  process.exitCode = (await runOnce(options)) ? 0 : 1;
}

try {
  await main();
} catch (error) {
  // Whatever kept the tests from running is a failure, and the last line says so.
  const told = error instanceof UsageError ? error.message : error instanceof Error ? error.stack : error;
  print(`${told}\n\n0 passed, 1 failed`);
  process.exitCode = 1;
}
