import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { bareEnvironment } from '../../support/environment.ts';
import { openFolder } from '../../support/folders.ts';

t.setTimeout(120_000);
const root = path.resolve(import.meta.dirname, '../../..');

type Node = Readonly<{ command: string; version: string }>;

function run(command: string, args: readonly string[], cwd = root) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, env: bareEnvironment(), encoding: 'utf8' });
  return { status, out: stdout, err: stderr };
}

/** The machine's own, where it is one that knows no TypeScript. */
function oldNode(): Node | undefined {
  const command = '/usr/bin/node';
  const [, version = ''] = /^v((?:1\d|2[0-3])\..*)\n$/.exec(run(command, ['--version']).out ?? '') ?? [];
  return version === '' ? undefined : { command, version };
}

/** Ours, which says that it is another version or another platform, and reads no TypeScript either. */
async function pretended(test: Test, version: string, platform: string = process.platform): Promise<Node> {
  const folder = await openFolder(test);
  const said = { version, platform };
  const define = (object: string, name: string, value: string) =>
    `Object.defineProperty(${object}, '${name}', { value: '${value}' });`;
  writeFileSync(
    path.join(folder, 'pretend.cjs'),
    define('process.versions', 'node', said.version) + define('process', 'platform', said.platform),
  );
  const command = path.join(folder, 'node');
  writeFileSync(command, `#!/bin/sh\nexec '${process.execPath}' --no-strip-types -r '${folder}/pretend.cjs' "$@"\n`);
  chmodSync(command, 0o755);
  return { command, version };
}

/** Nothing but these files of the clone. */
async function cloneOf(test: Test, ...files: string[]): Promise<string> {
  const clone = await openFolder(test);
  for (const file of files) {
    mkdirSync(path.dirname(path.join(clone, file)), { recursive: true });
    copyFileSync(path.join(root, file), path.join(clone, file));
  }
  return clone;
}

const needed = ({ version }: Node) =>
  `Node.js 24 or newer is needed, this is ${version}: install it, or use npx node, which finds the one among the packages\n`;

/** What the platforms that read a Procfile start. */
const PROCFILE = readFileSync(path.join(root, 'Procfile'), 'utf8')
  .trim()
  .split('\n')
  .map((line) => line.replace(/^\w+: node /, ''));

t.test('the Procfile and docs/deploy.md start the same three', async (test) => {
  test.same(
    PROCFILE,
    ['api', 'jobs', 'migrate'].map((part) => `scripts/run.mjs ${part}`),
  );
  const docs = readFileSync(path.join(root, 'docs/deploy.md'), 'utf8');
  for (const command of PROCFILE) test.ok(docs.includes(`\`npx node ${command}\``), command);
});

const real = oldNode();
t.test('an older Node says which one is needed', { skip: !real && 'the machine has none' }, async (test) => {
  if (!real) return;
  for (const command of PROCFILE) {
    test.same(run(real.command, command.split(' ')), { status: 78, out: '', err: needed(real) }, command);
  }
});

t.test('also one that is not there, as far as we can pretend', async (test) => {
  for (const version of ['18.20.4', '20.20.2', '22.18.0', '23.11.1']) {
    const node = await pretended(test, version);
    test.match(run(node.command, ['api/main.ts']).err, /ERR_UNKNOWN_FILE_EXTENSION/, 'it reads no TypeScript');
    for (const command of PROCFILE) {
      test.same(run(node.command, command.split(' ')), { status: 78, out: '', err: needed(node) }, command);
    }
  }
});

t.test('a new one runs the part with its arguments, and refuses what is none', async (test) => {
  for (const [part, help] of [
    ['api', 'node api/main.ts\n'],
    ['jobs', 'node jobs/main.ts\n'],
    ['migrate', 'npm run migrate: '],
  ] as const) {
    const { status, out, err } = run(process.execPath, ['scripts/run.mjs', part, '--help']);
    test.match({ status, err }, { status: 0, err: '' }, part);
    test.ok(out.startsWith(help), out.slice(0, 100));
  }
  for (const args of [[], ['apis'], ['toString']]) {
    test.match(run(process.execPath, ['scripts/run.mjs', ...args]), {
      ...{ status: 64, out: '' },
      err: /^node scripts\/run\.mjs api\|jobs\|migrate: .*\n$/,
    });
  }
});

t.test('a Node that is too old to install anything is named', async (test) => {
  const node = await pretended(test, '18.20.4');
  const clone = await cloneOf(test, 'scripts/bootstrap.mjs', 'package-lock.json');
  const err = 'Node.js 20 or newer is needed, this is 18.20.4\n';
  test.same(run(node.command, ['scripts/bootstrap.mjs'], clone), { status: 1, out: '', err });
});

t.test('an older Node on a platform that none comes for says which one is needed', async (test) => {
  const node = await pretended(test, '20.20.2', 'sunos');
  const clone = await cloneOf(test, 'scripts/bootstrap.mjs', 'package-lock.json');
  const err = `Node.js 24 is needed: for sunos-${process.arch} none comes with the packages, and this machine has 20.20.2; install it from https://nodejs.org\n`;
  test.same(run(node.command, ['scripts/bootstrap.mjs'], clone), { status: 1, out: '', err });
});

t.test('the command says so too, where no Node came with the packages', async (test) => {
  const node = await pretended(test, '20.20.2');
  const command = 'scripts/command/business-runner.mjs';
  const clone = await cloneOf(test, command);
  mkdirSync(path.join(clone, 'node_modules'));
  writeFileSync(path.join(clone, 'node_modules/.package-lock.json'), '{}');
  const err = 'business-runner: Node.js 24 is needed, and this is 20.20.2; npm start brings one\n';
  test.same(run(node.command, [command, 'task', 'list'], clone), { status: 1, out: '', err });
});
