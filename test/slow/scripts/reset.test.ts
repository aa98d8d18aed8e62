import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { acquireLock } from '../../../engine/process/lock.ts';
import { bareEnvironment } from '../../support/environment.ts';
import { openFolder } from '../../support/folders.ts';

t.setTimeout(180_000);
const root = path.resolve(import.meta.dirname, '../../..');

async function node(argv: readonly string[], dataDir: string, env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, argv, {
    cwd: root,
    env: bareEnvironment({ DATA_DIR: dataDir, ...env }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { status, out, err };
}

function reset(dataDir: string, argv: readonly string[] = ['--yes'], env: NodeJS.ProcessEnv = {}) {
  return node(['scripts/reset.ts', '--no-env-file', ...argv], dataDir, env);
}

/** A data folder with a database, files and a token, below a folder of its own. */
async function dataFolder(test: Test): Promise<string> {
  const dataDir = path.join(await openFolder(test), '.data');
  await mkdir(path.join(dataDir, 'postgres', 'base'), { recursive: true });
  await writeFile(path.join(dataDir, 'postgres', 'PG_VERSION'), '18\n');
  await mkdir(path.join(dataDir, 'files'));
  await writeFile(path.join(dataDir, 'files', 'object'), 'bytes');
  await writeFile(path.join(dataDir, 'agent-service-token'), 'token\n');
  return dataDir;
}

t.test('database and files go, the token stays', async (test) => {
  const dataDir = await dataFolder(test);
  test.match(await reset(dataDir), {
    status: 0,
    out: `removed ${dataDir}/postgres\nremoved ${dataDir}/files\nleft in ${dataDir}: agent-service-token\n`,
    err: '',
  });
  test.same(await readdir(dataDir), ['agent-service-token']);
  test.match(await reset(dataDir), { status: 1, err: /nothing to remove\n$/ });
});

t.test('nothing goes without a yes, while a start runs, or where DATABASE_URL is set', async (test) => {
  const dataDir = await dataFolder(test);
  test.match(await reset(dataDir, []), { status: 1, err: 'there is no terminal to ask: add --yes\n' });
  const release = acquireLock(path.join(dataDir, 'start.lock'));
  test.match(await reset(dataDir), {
    status: 1,
    err: new RegExp(`already runs on ${dataDir}, as process ${process.pid}`),
  });
  release();
  const external = await reset(dataDir, ['--yes'], { DATABASE_URL: 'postgres://127.0.0.1/x' });
  test.match(external, { status: 1, err: /^DATABASE_URL is set/ });
  test.match(await reset(dataDir, ['--no']), { status: 64 });
  test.match(await reset(path.join(dataDir, 'none')), { status: 1, err: /nothing to remove\n$/ });
  test.same((await readdir(dataDir)).sort(), ['agent-service-token', 'files', 'postgres']);
});

const hasScript = spawnSync('script', ['--version']).stdout?.includes('util-linux') ?? false;

const withoutTerminal = hasScript ? false : 'script is not installed';

/** Asks at a terminal, which sends these keys. */
async function answer(dataDir: string, keys: string) {
  const child = spawn('script', ['-qec', `${process.execPath} scripts/reset.ts --no-env-file`, '/dev/null'], {
    cwd: root,
    env: bareEnvironment({ DATA_DIR: dataDir }),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let out = '';
  child.stdout.on('data', (chunk) => {
    out += chunk;
    if (out.includes('Type yes: ') && child.stdin.writable) child.stdin.end(keys);
  });
  const [status] = await once(child, 'close');
  return { status, out };
}

t.test('the end of input is a no', { skip: withoutTerminal }, async (test) => {
  const dataDir = await dataFolder(test);
  const CTRL_D = '\u0004';
  test.match(await answer(dataDir, CTRL_D), { status: 1, out: 'Type yes: \r\nnothing was removed\r\n' });
  test.same((await readdir(dataDir)).sort(), ['agent-service-token', 'files', 'postgres'], 'the lock is released');
  test.match(await answer(dataDir, 'no\n'), { status: 1, out: 'nothing was removed\r\n' });
  test.match(await answer(dataDir, 'yes\n'), { status: 0, out: `removed ${dataDir}/files\r\n` });
});

/** A data folder whose database lies outside, in a folder that names `owner` as its own. */
async function dataFolderWithOutside(test: Test, owner: (dataDir: string) => string | undefined) {
  const dataDir = await dataFolder(test);
  const outside = path.join(path.dirname(dataDir), 'outside');
  await mkdir(outside);
  await rename(path.join(dataDir, 'postgres'), path.join(outside, 'postgres'));
  const pointer = path.join(dataDir, 'postgres.location');
  await writeFile(pointer, `${outside}/postgres\n`);
  const named = owner(dataDir);
  if (named !== undefined) await writeFile(path.join(outside, 'data-folder'), `${named}\n`);
  return { dataDir, outside, pointer };
}

t.test('a database outside of the data folder goes with it', async (test) => {
  const { dataDir, outside } = await dataFolderWithOutside(test, (own) => own);
  test.match(await reset(dataDir), {
    status: 0,
    out: `removed ${outside}/postgres\nremoved ${dataDir}/files\nremoved ${outside}\nleft in ${dataDir}: agent-service-token\n`,
  });
  test.same(await readdir(dataDir), ['agent-service-token']);
  test.same(await readdir(path.dirname(dataDir)), ['.data']);
});

t.test('it asks before a database outside goes, and names it', { skip: withoutTerminal }, async (test) => {
  const { dataDir, outside } = await dataFolderWithOutside(test, (own) => own);
  test.match(await reset(dataDir, []), { status: 1, err: 'there is no terminal to ask: add --yes\n' });
  const question = `Remove ${outside}/postgres and ${dataDir}/files and ${outside} with everything in them? Type yes: `;
  test.match(await answer(dataDir, 'no\n'), { status: 1, out: question });
  test.same(await readdir(outside), ['data-folder', 'postgres']);
  test.match(await answer(dataDir, 'yes\n'), { status: 0, out: `removed ${outside}\r\n` });
  test.same(await readdir(path.dirname(dataDir)), ['.data']);
});

t.test('the folders of databases that no data folder names are listed', async (test) => {
  const dataDir = await dataFolder(test);
  const elsewhere = path.join(path.dirname(dataDir), 'elsewhere');
  const folder = (digit: string) => path.join(elsewhere, `${digit.repeat(12)}-aB3dE6`);
  for (const digit of ['0', '1', '2']) await mkdir(path.join(folder(digit), 'postgres'), { recursive: true });
  await mkdir(path.join(elsewhere, 'postgres-18'));
  const gone = path.join(path.dirname(dataDir), 'gone');
  await writeFile(path.join(folder('0'), 'data-folder'), `${gone}\n`);
  const other = await dataFolder(test);
  await writeFile(path.join(folder('2'), 'data-folder'), `${other}\n`);
  await writeFile(path.join(other, 'postgres.location'), `${folder('2')}/postgres\n`);

  const run = `import { runReset } from './scripts/reset/run.ts'; await runReset(${JSON.stringify(elsewhere)});`;
  const orphans = [
    `orphaned: ${folder('0')}, the database of ${gone}, which does not name it any more; if nothing needs it: rm -r ${folder('0')}\n`,
    `orphaned: ${folder('1')}, the database of a data folder that is not known; if nothing needs it: rm -r ${folder('1')}\n`,
  ].join('');
  const removed = await node(['--input-type=module', '-e', run, '--', '--no-env-file', '--yes'], dataDir);
  test.same(removed, {
    status: 0,
    out: `removed ${dataDir}/postgres\nremoved ${dataDir}/files\nleft in ${dataDir}: agent-service-token\nleft: ${elsewhere}/postgres-18, the Postgres binaries of starts as root\n${orphans}`,
    err: '',
  });
  const nothing = await node(['--input-type=module', '-e', run, '--', '--no-env-file', '--yes'], dataDir);
  test.match(nothing, { status: 1, out: orphans, err: /nothing to remove\n$/ }, 'also where nothing is removed');
  test.equal((await readdir(elsewhere)).length, 4, 'and none of them goes');
});

t.test('what a reset that was cut off has left is removed by the next one', async (test) => {
  const { dataDir, outside } = await dataFolderWithOutside(test, (own) => own);
  await rm(path.join(outside, 'postgres'), { recursive: true });
  await rm(path.join(dataDir, 'files'), { recursive: true });
  test.match(await reset(dataDir), { status: 0, out: `removed ${outside}\n` });
  test.same(await readdir(dataDir), ['agent-service-token']);
});

t.test('a database outside that is not known to be this one’s is named, and nothing goes', async (test) => {
  for (const owner of [undefined, '/srv/other/.data']) {
    const { dataDir, outside, pointer } = await dataFolderWithOutside(test, () => owner);
    const before = (await readdir(path.dirname(dataDir), { recursive: true })).sort();
    const refused = await reset(dataDir);
    test.match(refused, { status: 1, err: `the database is in ${outside}/postgres, outside of ${dataDir}, ` });
    test.match(refused.err, `remove that folder and ${pointer} yourself`);
    test.same((await readdir(path.dirname(dataDir), { recursive: true })).sort(), before);
    await rm(outside, { recursive: true });
    test.match(await reset(dataDir), { status: 1, err: /^the database is in / }, 'its disk may be away');
    await rm(pointer);
    test.match(await reset(dataDir), { status: 0 });
    test.same(await readdir(dataDir), ['agent-service-token']);
  }
});

t.test('nothing outside of the data folder goes', async (test) => {
  const dataDir = await dataFolder(test);
  const outside = path.join(path.dirname(dataDir), 'outside');
  await mkdir(outside);
  await writeFile(path.join(outside, 'kept'), 'kept');
  await symlink(outside, path.join(dataDir, 'files', 'link'));
  const elsewhere = await reset(dataDir, ['--yes'], { STORAGE_URL: `file://${outside}` });
  test.match(elsewhere, {
    status: 0,
    out: `note: files of STORAGE_URL stay where they are\nremoved ${dataDir}/postgres\n`,
  });
  test.match(await reset(dataDir), { status: 0, out: `removed ${dataDir}/files\n` });
  test.equal(await readFile(path.join(outside, 'kept'), 'utf8'), 'kept');
});
