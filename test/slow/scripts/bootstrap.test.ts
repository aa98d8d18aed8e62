import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { isRoot } from '../../../engine/postgres/account.ts';
import { openFolder } from '../../support/folders.ts';

t.setTimeout(300_000);
const root = path.resolve(import.meta.dirname, '../../..');
/** Root may write everywhere. */
const user = isRoot() ? { uid: 65_534, gid: 65_534 } : {};

/** A clone whose packages are files beside it, so that no registry is asked: one to run, one to develop, and a Node. */
async function cloneOf(test: Test) {
  const folder = await openFolder(test);
  const own = (name: string) => {
    const made = path.join(folder, name);
    mkdirSync(made);
    if (isRoot()) chownSync(made, 65_534, 65_534);
    return made;
  };
  const [clone, home, source] = [own('clone'), own('home'), own('source')];
  const write = (file: string, value: unknown) => {
    mkdirSync(path.dirname(path.join(clone, file)), { recursive: true });
    writeFileSync(path.join(clone, file), JSON.stringify(value));
  };
  const pack = (name: string, more: object = {}) => {
    writeFileSync(path.join(source, 'package.json'), JSON.stringify({ name, version: '1.0.0', ...more }));
    execFileSync('npm', ['pack', '--silent', '--pack-destination', clone], { cwd: source });
    return `file:${name}-1.0.0.tgz`;
  };
  writeFileSync(path.join(source, 'node.sh'), `#!/bin/sh\nexec ${process.execPath} "$@"\n`, { mode: 0o755 });
  const dependencies = { a: pack('a') };
  const devDependencies = { b: pack('b') };
  const nodeName = `node-${process.platform}-${process.arch}`;
  const bin = { node: 'node.sh' };
  const node = { [nodeName]: pack(nodeName, { bin }).replace('file:', 'file:../../') };
  const manifest = { name: 'clone', version: '1.0.0', workspaces: ['scripts/node'], dependencies, devDependencies };
  const workspace = { name: 'clone-node', version: '1.0.0', optionalDependencies: node };
  write('package.json', manifest);
  write('scripts/node/package.json', workspace);
  write('package-lock.json', {
    ...{ name: 'clone', version: '1.0.0', lockfileVersion: 3 },
    packages: {
      '': manifest,
      'node_modules/a': { version: '1.0.0', resolved: 'file:a-1.0.0.tgz' },
      'node_modules/b': { version: '1.0.0', resolved: 'file:b-1.0.0.tgz', dev: true },
      'node_modules/clone-node': { resolved: 'scripts/node', link: true },
      [`node_modules/${nodeName}`]: { version: '1.0.0', resolved: `file:${nodeName}-1.0.0.tgz`, bin, optional: true },
      'scripts/node': workspace,
    },
  });
  copyFileSync(path.join(root, 'scripts', 'bootstrap.mjs'), path.join(clone, 'scripts', 'bootstrap.mjs'));
  if (isRoot()) execFileSync('chown', ['-R', '65534:65534', clone]);
  const run = async (args: readonly string[] = [], command = process.execPath, output = '>/dev/null') => {
    const line = `set -o pipefail; "$0" scripts/bootstrap.mjs "$@" ${output}`;
    const child = spawn('bash', ['-c', line, command, ...args], {
      ...user,
      cwd: clone,
      env: { PATH: process.env['PATH'], HOME: home },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const [err, [status]] = await Promise.all([text(child.stderr), once(child, 'close')]);
    return { status, err };
  };
  /** The packages that are there, each with what tells whether it was unpacked anew. */
  const packages = () => {
    const modules = path.join(clone, 'node_modules');
    const names = readdirSync(modules).filter((name) => !name.startsWith('.'));
    return Object.fromEntries(names.map((name) => [name, statSync(path.join(modules, name, 'package.json')).ino]));
  };
  return { clone, home, nodeName, packages, run };
}

function close(folder: string): void {
  if (isRoot()) chownSync(folder, 0, 0);
  chmodSync(folder, 0o555);
}

const done = { status: 0, err: '' };

t.test('what runs is installed first, and the rest beside it when something needs that', async (test) => {
  const { packages, run } = await cloneOf(test);
  test.same(await run(), done);
  const first = packages();
  test.same(Object.keys(first), ['a']);
  test.same(await run(['dev']), done);
  const all = packages();
  test.same(Object.keys(all), ['a', 'b']);
  test.equal(all['a'], first['a'], 'what may run keeps its files');
  test.same(await run(), done);
  test.same(packages(), all, 'and what is there stays');
});

t.test('a reader who goes first, standard output that is closed or a full disk end no installation', async (test) => {
  for (const output of ['| true', '>&-', '>/dev/full']) {
    const { packages, run } = await cloneOf(test);
    test.same(await run([], process.execPath, output), done, output);
    test.same(Object.keys(packages()), ['a'], output);
  }
});

t.test('two at once get what they need, whoever is first', async (test) => {
  const { packages, run } = await cloneOf(test);
  test.same(await Promise.all([run(), run(['dev']), run()]), [done, done, done]);
  test.same(Object.keys(packages()), ['a', 'b']);
});

t.test('packages that were being added when npm was killed are installed anew', async (test) => {
  const { clone, packages, run } = await cloneOf(test);
  await run();
  mkdirSync(path.join(clone, 'node_modules', 'b'));
  writeFileSync(path.join(clone, 'node_modules', '.adding-packages'), '');
  writeFileSync(path.join(clone, 'node_modules', 'b', 'package.json'), '{"name": "b", "version": "1.0.0"');
  if (isRoot()) execFileSync('chown', ['-R', '65534:65534', clone]);
  test.same(await run(['dev']), done);
  test.same(Object.keys(packages()), ['a', 'b']);
  const half = readFileSync(path.join(clone, 'node_modules', 'b', 'package.json'), 'utf8');
  test.match(JSON.parse(half), { name: 'b' });
  test.notOk(existsSync(path.join(clone, 'node_modules', '.adding-packages')));
});

t.test('the Node of the machine is used where it is new enough, also by npx', async (test) => {
  const { clone, packages, run } = await cloneOf(test);
  test.same(await run(), done);
  test.notOk(Object.keys(packages()).some((name) => name.startsWith('node-')));
  const link = path.join(clone, 'node_modules', '.bin', 'node');
  test.equal(realpathSync(link), realpathSync(process.execPath));
  // As after an upgrade of it.
  rmSync(link);
  symlinkSync('/nowhere/node', link);
  test.same(await run(), done);
  test.equal(realpathSync(link), realpathSync(process.execPath));
});

const machine = '/usr/bin/node';
const version = spawnSync(machine, ['--version'], { encoding: 'utf8' }).stdout ?? '';
const isOld = /^v2[0-3]\./.test(version);

t.test('an older one gets a Node with the packages', { skip: !isOld && 'it has none' }, async (test) => {
  const { clone, nodeName, packages, run } = await cloneOf(test);
  test.same(await run(['dev'], process.execPath), done);
  rmSync(path.join(clone, 'node_modules', '.bin', 'node'));
  test.same(await run([], machine), done);
  test.same(Object.keys(packages()).sort(), ['a', 'b', 'clone-node', nodeName], 'nothing that was there goes');
  const bundled = spawnSync(path.join(clone, 'node_modules', '.bin', 'node'), ['--version'], { encoding: 'utf8' });
  test.equal(bundled.stdout, `${process.version}\n`);
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
