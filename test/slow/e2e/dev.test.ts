import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, cp, readFile, rename, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import t, { type Test } from 'tap';
import { createEmptyDatabase } from '../../support/database.ts';
import { openFolder } from '../../support/folders.ts';
import { query } from '../../support/postgres.ts';
import { until } from '../../support/wait.ts';

t.setTimeout(300_000);
const root = path.resolve(import.meta.dirname, '../../..');

/** A copy of the project, whose files a test may change. */
async function copyProject(test: Test): Promise<string> {
  const copy = path.join(await openFolder(test), 'project');
  for (const name of ['api', 'engine', 'jobs', 'scripts', 'sql', 'package.json']) {
    await cp(path.join(root, name), path.join(copy, name), { recursive: true });
  }
  await symlink(path.join(root, 'node_modules'), path.join(copy, 'node_modules'));
  return copy;
}

t.test('npm run dev applies changes of the API, the jobs and SQL while it runs', async (test) => {
  const project = await copyProject(test);
  const { url: databaseUrl } = await createEmptyDatabase(test);
  const child = spawn(process.execPath, ['scripts/dev.ts', '--no-env-file'], {
    cwd: project,
    env: {
      PATH: process.env['PATH'] ?? '',
      PORT: '0',
      DATA_DIR: path.join(path.dirname(project), '.data'),
      DATABASE_URL: databaseUrl,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  test.teardown(() => child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  const exit = once(child, 'exit');
  let position = 0;
  /** Waits for output after the last match. */
  async function see(pattern: RegExp): Promise<RegExpExecArray> {
    let found: RegExpExecArray | null = null;
    await until(
      String(pattern),
      () => {
        found = pattern.exec(output.slice(position));
        return found !== null || child.exitCode !== null;
      },
      90_000,
    );
    if (!found) throw new Error(`${pattern} did not appear in: ${output}`);
    const match: RegExpExecArray = found;
    position += match.index + match[0].length;
    return match;
  }

  const [, url] = await see(/ API +(\S+)\n/);
  await see(/Watching .* for changes/);
  await fetch(`${url}/organizations`);
  await see(/INFO \(api\): GET \/organizations 200 \d+ ms/);

  await appendFile(path.join(project, 'api', 'app.ts'), '\n// changed\n');
  await see(/changed: api\/app\.ts\n/);
  await see(/api is running again/);
  test.equal((await fetch(`${url}/readyz`)).status, 200, 'at the same port');

  // As editors save: a new file takes the place of the old one.
  const jobs = path.join(project, 'jobs', 'main.ts');
  await writeFile(`${jobs}.new`, `${await readFile(jobs, 'utf8')}\n// changed\n`);
  await rename(`${jobs}.new`, jobs);
  await see(/changed: jobs\/main\.ts/);
  await see(/jobs is running again/);

  const definition = () => query(databaseUrl, `select prosrc from pg_proc where proname = 'task_retry'`);
  const file = path.join(project, 'sql', 'functions', 'tasks', 'task_retry.sql');
  const before = await definition();
  const text = await readFile(file, 'utf8');
  await writeFile(file, text.replace('returns jsonb', 'returns jsonx'));
  await see(/changed: sql\/functions\/tasks\/task_retry\.sql/);
  await see(/jsonx\W.*does not exist[\s\S]*The migration failed/);
  test.same(await definition(), before, 'a function that is broken changes nothing');
  await writeFile(file, text.replace(/\bbegin\b/, 'begin\n  -- changed'));
  await see(/api is running again/);
  test.match(await definition(), [{ prosrc: /-- changed/ }]);

  child.kill('SIGINT');
  test.same(await exit, [0, null]);
  test.match(output, /Stopped\.\n$/);
});
