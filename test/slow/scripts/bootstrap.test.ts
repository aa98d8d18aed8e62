import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, copyFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { isRoot } from '../../../engine/postgres/account.ts';
import { openFolder } from '../../support/folders.ts';

t.setTimeout(120_000);
const root = path.resolve(import.meta.dirname, '../../..');
/** Root may write everywhere. */
const user = isRoot() ? { uid: 65_534, gid: 65_534 } : {};

/** A clone whose only package is a file beside it, so that no registry is asked. */
async function cloneOf(test: Test) {
  const folder = await openFolder(test);
  const own = (name: string) => {
    const made = path.join(folder, name);
    mkdirSync(made);
    if (isRoot()) chownSync(made, 65_534, 65_534);
    return made;
  };
  const [clone, home, source] = [own('clone'), own('home'), own('source')];
  writeFileSync(path.join(source, 'package.json'), JSON.stringify({ name: 'a', version: '1.0.0' }));
  execFileSync('npm', ['pack', '--silent', '--pack-destination', clone], { cwd: source });
  const dependencies = { a: 'file:a-1.0.0.tgz' };
  writeFileSync(path.join(clone, 'package.json'), JSON.stringify({ name: 'clone', version: '1.0.0', dependencies }));
  writeFileSync(
    path.join(clone, 'package-lock.json'),
    JSON.stringify({
      ...{ name: 'clone', version: '1.0.0', lockfileVersion: 3 },
      packages: {
        '': { name: 'clone', version: '1.0.0', dependencies },
        'node_modules/a': { version: '1.0.0', resolved: 'file:a-1.0.0.tgz' },
      },
    }),
  );
  mkdirSync(path.join(clone, 'scripts'));
  copyFileSync(path.join(root, 'scripts', 'bootstrap.mjs'), path.join(clone, 'scripts', 'bootstrap.mjs'));
  const run = async () => {
    const child = spawn(process.execPath, ['scripts/bootstrap.mjs'], {
      ...user,
      cwd: clone,
      env: { PATH: process.env['PATH'], HOME: home },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const [err, [status]] = await Promise.all([text(child.stderr), once(child, 'close')]);
    return { status, err };
  };
  return { clone, home, run };
}

function close(folder: string): void {
  if (isRoot()) chownSync(folder, 0, 0);
  chmodSync(folder, 0o555);
}

t.test('packages are installed', async (test) => {
  const { clone, run } = await cloneOf(test);
  test.same(await run(), { status: 0, err: '' });
  test.ok(readdirSync(path.join(clone, 'node_modules')).includes('a'));
});

t.test('a folder that may not be written to is named, in one line', async (test) => {
  const closedHome = await cloneOf(test);
  close(closedHome.home);
  test.same(await closedHome.run(), {
    status: 1,
    err: `this user may not write to ${closedHome.home}/.npm, where npm keeps its cache: set npm_config_cache to a folder that it may use\n`,
  });
  const closedClone = await cloneOf(test);
  close(closedClone.clone);
  test.same(await closedClone.run(), { status: 1, err: `this user may not write to ${closedClone.clone}\n` });
});
