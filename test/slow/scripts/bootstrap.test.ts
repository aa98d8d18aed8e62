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

const COMMAND = 'scripts/command/business-runner.mjs';
/** In the place of the command, whose packages are not in the clone. Node.js 20 cannot read it. */
const SAYS_WHO_RUNS_IT =
  'const said: string[] = [process.version, ...process.argv.slice(2)];\nconsole.log(said.join());\n';

const NODE_NAME = `node-${process.platform}-${process.arch}`;
const BIN = { node: 'node.sh' };

/** The packages, each in a folder of its name beside its `<name>-1.0.0.tgz`. */
async function pack(): Promise<string> {
  const folder = await openFolder(t);
  const names = ['a', 'b', NODE_NAME];
  for (const name of names) {
    mkdirSync(path.join(folder, name));
    const manifest = { name, version: '1.0.0', ...(name === NODE_NAME ? { bin: BIN } : {}) };
    writeFileSync(path.join(folder, name, 'package.json'), JSON.stringify(manifest));
    const script = `#!/bin/sh\nexec ${process.execPath} "$@"\n`;
    if (name === NODE_NAME) writeFileSync(path.join(folder, name, 'node.sh'), script, { mode: 0o755 });
  }
  execFileSync('npm', ['pack', '--silent', ...names.map((name) => `./${name}`)], { cwd: folder });
  return folder;
}

const packed = await pack();

/** A clone whose packages are files beside it, so that no registry is asked: one to run, one to develop, and a Node. */
async function cloneOf(test: Test) {
  const folder = await openFolder(test);
  const own = (name: string) => {
    const made = path.join(folder, name);
    mkdirSync(made);
    if (isRoot()) chownSync(made, 65_534, 65_534);
    return made;
  };
  const [clone, home] = [own('clone'), own('home')];
  const write = (file: string, value: unknown) => {
    mkdirSync(path.dirname(path.join(clone, file)), { recursive: true });
    writeFileSync(path.join(clone, file), JSON.stringify(value));
  };
  const take = (name: string) => {
    const file = `${name}-1.0.0.tgz`;
    copyFileSync(path.join(packed, file), path.join(clone, file));
    return `file:${file}`;
  };
  const dependencies = { a: take('a') };
  const devDependencies = { b: take('b') };
  const node = { [NODE_NAME]: take(NODE_NAME).replace('file:', 'file:../../') };
  const manifest = {
    ...{ name: 'clone', version: '1.0.0', workspaces: ['scripts/node'], dependencies, devDependencies },
    bin: { 'business-runner': COMMAND },
  };
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
      [`node_modules/${NODE_NAME}`]: {
        version: '1.0.0',
        resolved: `file:${NODE_NAME}-1.0.0.tgz`,
        bin: BIN,
        optional: true,
      },
      'scripts/node': workspace,
    },
  });
  mkdirSync(path.join(clone, 'scripts', 'command'));
  for (const file of ['scripts/bootstrap.mjs', COMMAND]) copyFileSync(path.join(root, file), path.join(clone, file));
  writeFileSync(path.join(clone, 'scripts', 'command', 'main.ts'), SAYS_WHO_RUNS_IT);
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
  /** What a line of shell prints, by a PATH whose Node may be another one than ours. */
  const shell = async (line: string, PATH = process.env['PATH']) => {
    const env = { PATH, HOME: home, npm_config_offline: 'true' };
    const child = spawn('sh', ['-c', line], { ...user, cwd: clone, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    return { status, out, err };
  };
  /** The packages that are there, each with what tells whether it was unpacked anew. */
  const packages = () => {
    const modules = path.join(clone, 'node_modules');
    const names = readdirSync(modules).filter((name) => !name.startsWith('.'));
    return Object.fromEntries(names.map((name) => [name, statSync(path.join(modules, name, 'package.json')).ino]));
  };
  return { clone, home, packages, run, shell };
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

t.test('it says what it installs and how long that took, and where all is there nothing', async (test) => {
  const { shell } = await cloneOf(test);
  const install = 'node scripts/bootstrap.mjs';
  test.match(await shell(install), { status: 0, out: /^Installing 1 packages …\nInstalled in \d+ s\.\n$/, err: '' });
  test.same(await shell(install), { status: 0, out: '', err: '' });
});

t.test(
  'npx business-runner in a bare clone installs first, and prints nothing else to standard output',
  async (test) => {
    const { packages, shell } = await cloneOf(test);
    const called = await shell("npx business-runner task list 'two words'");
    test.match(called, { status: 0, out: `${process.version},task,list,two words\n` });
    test.match(called.err, /^Installing 1 packages …\nInstalled in \d+ s\.\n$/);
    test.same(Object.keys(packages()), ['a']);
    test.match(await shell('npx business-runner inbox'), { status: 0, out: `${process.version},inbox\n`, err: '' });
  },
);

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
  const { clone, packages, run } = await cloneOf(test);
  test.same(await run(['dev'], process.execPath), done);
  rmSync(path.join(clone, 'node_modules', '.bin', 'node'));
  test.same(await run([], machine), done);
  test.same(Object.keys(packages()).sort(), ['a', 'b', 'clone-node', NODE_NAME], 'nothing that was there goes');
  const bundled = spawnSync(path.join(clone, 'node_modules', '.bin', 'node'), ['--version'], { encoding: 'utf8' });
  test.equal(bundled.stdout, `${process.version}\n`);
});

t.test('the command takes it too, called by the older one', { skip: !isOld && 'it has none' }, async (test) => {
  const { packages, shell } = await cloneOf(test);
  const folders = (process.env['PATH'] ?? '').split(path.delimiter);
  const ofTheMachine = folders.filter((folder) => !folder.includes('node_modules')).join(path.delimiter);
  const called = await shell('node --version >&2; npx business-runner task list', ofTheMachine);
  test.match(called, { status: 0, out: `${process.version},task,list\n` });
  test.match(called.err, new RegExp(`^${version.trim()}\nInstalling 2 packages …\n`), 'what reads no TypeScript');
  test.ok(Object.keys(packages()).includes(NODE_NAME));
});

const lock: { packages: Readonly<Record<string, { dev?: boolean; link?: boolean }>> } = JSON.parse(
  readFileSync(path.join(root, 'package-lock.json'), 'utf8'),
);

/** What a folder takes of a disk whose blocks are of 4 KiB. */
function bytesOnDisk(folder: string): number {
  const sizes = readdirSync(folder, { withFileTypes: true }).map((entry) => {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) return bytesOnDisk(file);
    return entry.isFile() ? Math.ceil(statSync(file).size / 4_096) * 4_096 : 0;
  });
  return sizes.reduce((sum, size) => sum + size, 4_096);
}

const ofLinux = { skip: process.platform !== 'linux' && 'the figures are those of Linux' };
t.test('what is installed takes as much as README.md and docs/deploy.md say', ofLinux, async (test) => {
  const there = Object.entries(lock.packages).filter(
    ([name, { link }]) => name.startsWith('node_modules/') && !link && existsSync(path.join(root, name)),
  );
  const isBelow = (name: string) => there.some(([other]) => name.startsWith(`${other}/`));
  const node = `node_modules/node-${process.platform}-${process.arch}`;
  const sizes = { running: 0, node: 0, dev: 0 };
  for (const [name, { dev }] of there.filter(([one]) => !isBelow(one))) {
    const kind = name === node ? 'node' : dev ? 'dev' : 'running';
    sizes[kind] += bytesOnDisk(path.join(root, name)) / 1_000_000;
  }
  const numbers = (page: string, pattern: RegExp) => {
    const found = pattern.exec(readFileSync(path.join(root, page), 'utf8'));
    test.ok(found, page);
    return (found ?? []).slice(1).map(Number);
  };
  const [alone = 0, withNode = 0] = numbers('README.md', /\b(\d+) MB with Node\.js 24 on the machine, (\d+) MB where/);
  const [deployed = 0] = numbers('docs/deploy.md', /installs the packages, (\d+) MB;/);
  const [added = 0] = numbers('README.md', /packages that development needs \((\d+) MB\)/);
  const isSaid = (size: number, said: number, what: string) =>
    test.ok(size <= said && size > said * 0.9, `${what}: ${Math.round(size)} MB, and ${said} are said`);
  test.equal(deployed, withNode);
  isSaid(sizes.running, alone, 'what runs');
  isSaid(sizes.dev, added, 'what development adds');
  // It came with the packages where the machine has no such Node.
  if (sizes.node > 0) isSaid(sizes.running + sizes.node, withNode, 'with a Node');
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
