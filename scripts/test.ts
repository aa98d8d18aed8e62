import { execFile } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { environmentWith, settings } from '../engine/config.ts';
import { startTestPostgres, type TestServer } from '../test/support/postgres.ts';
import { describe, totals } from './test/report.ts';
import { type FileResult, runFile } from './test/run_file.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
/** The oldest supported version: the database's own tests run there too, where the machine has it. */
const OLD_POSTGRES = '/usr/lib/postgresql/15/bin';
const ALSO_ON_OLD = /^test\/(sql|jobs)\//;
/** As many files at once as the machine has cores for: each keeps one and its Postgres sessions another busy. */
const AT_ONCE = 2;

const USAGE = `npm test: type check, lint, and all tests, against databases that it starts itself.

  npm test -- test/sql/migrate.test.ts …   only these files, without type check and lint
`;

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Settings of the person who tests must not reach the tests. */
function testEnvironment(server: TestServer, bin: string | undefined): NodeJS.ProcessEnv {
  const none = Object.fromEntries(Object.keys(settings).map((name) => [name, undefined]));
  return {
    ...environmentWith(none),
    TEST_DATABASE_URL: server.url,
    TEST_POSTGRES_BIN: bin,
    // Every file loads much of the same code.
    NODE_COMPILE_CACHE: path.join(ROOT, 'node_modules', '.cache', 'compiled'),
    FORCE_COLOR: undefined,
    NO_COLOR: '1',
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

/** Runs files against one server that lives as long as they do. */
async function runAll(files: readonly string[], label: string, bin?: string): Promise<FileResult[]> {
  if (files.length === 0) return [];
  const server = await startTestPostgres(bin);
  print(`Postgres ${server.version}${bin ? ` of ${bin}` : ' (embedded)'}`);
  const interrupted = () => void server.stop().then(() => process.exit(130));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupted);
  const results: FileResult[] = [];
  const waiting = [...files];
  const work = async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      const result = await runFile(file, ROOT, testEnvironment(server, bin));
      print(describe(result, label));
      results.push(result);
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupted);
    await server.stop();
  }
  return results;
}

/** All test files; the slowest kind first, so that it does not run alone at the end. */
function allFiles(): string[] {
  const files = globSync('test/**/*.test.ts', { cwd: ROOT }).sort();
  const slow = (file: string) => (file.startsWith('test/e2e/') ? 0 : 1);
  return files.sort((a, b) => slow(a) - slow(b));
}

async function main(): Promise<void> {
  if (process.argv.includes('--help')) return print(USAGE);
  const chosen = process.argv.slice(2).map((file) => path.relative(ROOT, path.resolve(file)));
  const unknown = chosen.find((file) => !existsSync(path.join(ROOT, file)));
  if (unknown !== undefined) throw new Error(`there is no file ${unknown}`);

  let failedChecks = 0;
  if (chosen.length === 0) {
    const checks = await Promise.all([
      check('type check', 'tsc', ['--noEmit']),
      check('lint and format', 'biome', ['check', '.']),
    ]);
    failedChecks = checks.filter((ok) => !ok).length;
  }
  const files = chosen.length > 0 ? chosen : allFiles();
  const results = await runAll(files, '');
  if (existsSync(path.join(OLD_POSTGRES, 'postgres'))) {
    const again = files.filter((file) => ALSO_ON_OLD.test(file));
    results.push(...(await runAll(again, ' (Postgres 15)', OLD_POSTGRES)));
  }
  const { passed, failed } = totals(results, failedChecks);
  print(`\n${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
}

try {
  await main();
} catch (error) {
  // Whatever kept the tests from running is a failure, and the last line says so.
  print(`${error instanceof Error ? error.stack : error}\n\n0 passed, 1 failed`);
  process.exitCode = 1;
}
