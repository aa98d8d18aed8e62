import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdir, symlink, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import t, { type Test } from 'tap';
import { watchChanges, workOf } from '../../scripts/dev/changes.ts';
import { followLog } from '../../scripts/dev/follow_log.ts';
import { openFolder } from '../support/folders.ts';
import { until } from '../support/wait.ts';

t.test('a changed file restarts what loads it, and SQL migrates first', async (test) => {
  const both = { api: true, jobs: true };
  test.same(workOf('sql/functions/tasks/task_retry.sql'), { migrate: true, ...both });
  test.same(workOf('sql/functions/access.json'), { migrate: true, ...both });
  test.same(workOf('engine/db/schema/functions.ts'), { migrate: true, ...both });
  test.same(workOf('engine/config.ts'), { migrate: false, ...both });
  test.same(workOf('api/app.ts'), { migrate: false, api: true, jobs: false });
  test.same(workOf('jobs/main.ts'), { migrate: false, api: false, jobs: true });
  for (const file of ['sql/README.md', 'sql/schema.sql', 'api/tasks/.swp', 'jobs/README.md'])
    test.equal(workOf(file), undefined, file);
});

/** A folder with what is watched, in which a test may change files. */
async function projectFolder(test: Test): Promise<string> {
  const root = await openFolder(test);
  for (const name of ['api', 'engine', 'examples', 'jobs', 'scripts', 'sql', 'test'])
    await mkdir(path.join(root, name));
  return root;
}

/** Watches the folder. What it was called with; it returns where `wait` has ended. */
async function watchInto(test: Test, root: string, wait: Promise<void> = Promise.resolve()) {
  const seen: string[] = [];
  const errors: Error[] = [];
  const stop = await watchChanges(
    root,
    async (files) => {
      seen.push(...files);
      await wait;
    },
    (error) => errors.push(error),
  );
  test.teardown(stop);
  return { seen, errors, stop };
}

t.test('what changes while watching stops is not applied', async (test) => {
  const root = await projectFolder(test);
  const change = (name: string) => writeFile(path.join(root, 'api', name), '');
  const applied = Promise.withResolvers<void>();
  const watching = await watchInto(test, root, applied.promise);
  const other = await watchInto(test, root);
  await change('a.ts');
  await until('the first change', () => watching.seen.length === 1);
  await change('b.ts');
  await until('the second change', () => other.seen.includes('api/b.ts'));
  const stopping = watching.stop();
  applied.resolve();
  await stopping;
  // Of two moments of quiet the later one has passed.
  await change('c.ts');
  await until('the third change', () => other.seen.includes('api/c.ts'));
  test.same(watching.seen, ['api/a.ts']);
});

t.test('what cannot be watched is told once, and the rest is watched', async (test) => {
  const root = await projectFolder(test);
  for (const name of ['a', 'b']) await symlink(name, path.join(root, 'jobs', name));
  const { seen, errors } = await watchInto(test, root);
  test.match(errors, [{ code: 'ELOOP' }]);
  test.equal(errors.length, 1);
  await writeFile(path.join(root, 'api', 'a.ts'), '');
  await until('the change', () => seen.includes('api/a.ts'));
});

const fewWatches = 'echo 12 > /proc/sys/user/max_inotify_watches';
const skip = spawnSync('unshare', ['-Ur', 'sh', '-c', fewWatches]).status === 0 ? false : 'needs user namespaces';

t.test('npm test -- --watch goes on where the system watches no more files', { skip }, async (test) => {
  const root = await projectFolder(test);
  const code = `
    import { mkdirSync } from 'node:fs';
    import { watch } from './scripts/test/watch.ts';
    const print = (text) => process.stdout.write(text);
    let runs = 0;
    void watch(${JSON.stringify(root)}, async () => ++runs < 2 || process.exit(0), print);
    for (let number = 0; number < 20; number += 1) mkdirSync('${root}/api/folder_' + number);
    process.stdin.once('data', () => mkdirSync('${root}/api/last.ts'));`;
  const child = spawn(
    'unshare',
    ['-Ur', 'sh', '-c', `${fewWatches}; exec "$0" --input-type=module -e "$1"`, process.execPath, code],
    {
      cwd: path.resolve(import.meta.dirname, '../..'),
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  test.teardown(() => child.kill('SIGKILL'));
  const closed = once(child, 'close');
  let out = '';
  child.stdout.on('data', (chunk) => {
    out += chunk;
  });
  await until('the error', () => out.includes('ENOSPC') || child.exitCode !== null);
  child.stdin.end('change');
  test.same(await closed, [0, null]);
  test.equal(out.split('Changes of some files are not seen: ENOSPC').length, 2, 'once');
});

t.test('a log is followed from its end, also after it was emptied', async (test) => {
  const file = path.join(await openFolder(test), 'api.log');
  await writeFile(file, 'before\n');
  const output = new PassThrough({ encoding: 'utf8' });
  let seen = '';
  output.on('data', (chunk) => {
    seen += chunk;
  });
  const stop = followLog(file, output);
  await appendFile(file, 'first\n');
  await until('the first line', () => seen === 'first\n');
  await truncate(file);
  await appendFile(file, '2\n');
  await until('the second line', () => seen === 'first\n2\n');
  await appendFile(file, 'last\n');
  stop();
  await until('the last line', () => seen === 'first\n2\nlast\n');
});
