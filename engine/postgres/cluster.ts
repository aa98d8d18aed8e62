import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { type Account, isRoot } from './account.ts';
import type { Binaries } from './binaries.ts';
import { fullDisk, PostgresError } from './error.ts';

/** Nothing of our environment reaches Postgres: no PG* variables, no locale of the person who starts it. */
export const environment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
  TZ: 'UTC',
};

export const SUPERUSER = 'postgres';

/** How to spawn as the account; nothing to change when we are not root. */
export function asAccount(account: Account | undefined) {
  return { env: environment, cwd: '/', ...(account ? { uid: account.uid, gid: account.gid } : {}) };
}

export function clusterExists(cluster: string): boolean {
  return existsSync(path.join(cluster, 'PG_VERSION'));
}

/** @throws when the cluster belongs to another major version or to an account that we cannot be. */
export async function checkCluster(cluster: string, binaries: Binaries): Promise<void> {
  const major = Number(await readFile(path.join(cluster, 'PG_VERSION'), 'utf8'));
  if (major !== binaries.major) {
    throw new PostgresError(
      `the database in ${cluster} is of Postgres ${major}, and this is Postgres ${binaries.major}`,
    );
  }
}

export type NewCluster = Readonly<{
  binaries: Binaries;
  cluster: string;
  password: string;
  account: Account | undefined;
  /** False for a cluster that is thrown away. */
  durable: boolean;
}>;

/** Makes the cluster beside its place and moves it there when it is complete: a start that dies here leaves no half. */
export async function makeCluster(options: NewCluster): Promise<void> {
  const { binaries, cluster, account } = options;
  const unfinished = `${cluster}.new`;
  const passwordFile = `${cluster}.password`;
  // UTF-8 with code point order, the same on every machine; lower() and friends know all of Unicode.
  const locale =
    binaries.major >= 17
      ? ['--no-locale', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
      : ['--locale=C', '--lc-ctype=C.UTF-8'];
  try {
    await rm(unfinished, { recursive: true, force: true });
    await rm(passwordFile, { force: true });
    await mkdir(unfinished, { mode: 0o700 });
    await writeFile(passwordFile, options.password, { mode: 0o600, flag: 'wx' });
    if (account && isRoot()) {
      await chown(unfinished, account.uid, account.gid);
      await chown(passwordFile, account.uid, account.gid);
    }
    await promisify(execFile)(
      path.join(binaries.bin, 'initdb'),
      [
        ...['-D', unfinished, '-U', SUPERUSER, '-E', 'UTF8', ...locale],
        ...['-A', 'scram-sha-256', `--pwfile=${passwordFile}`, ...(options.durable ? [] : ['--no-sync'])],
        ...(binaries.major >= 14 ? ['--no-instructions'] : []),
      ],
      asAccount(account),
    );
    await rename(unfinished, cluster);
  } catch (error) {
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr) : '';
    const lines = stderr.split('\n').filter((line) => line !== '' && !line.includes('contents of data directory'));
    const reason = fullDisk(lines) ?? (lines.join(' ') || (error instanceof Error ? error.message : String(error)));
    throw new PostgresError(`cannot make a database in ${cluster}: ${reason}`, { cause: error });
  } finally {
    await rm(passwordFile, { force: true });
    await rm(unfinished, { recursive: true, force: true });
  }
}

/** Sets the superuser's password without knowing the old one. The cluster must be stopped, and its lock be held. */
export async function setPassword(
  binaries: Binaries,
  cluster: string,
  account: Account | undefined,
  password: string,
): Promise<void> {
  const child = spawn(path.join(binaries.bin, 'postgres'), ['--single', '-D', cluster, 'postgres'], {
    ...asAccount(account),
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  let output = '';
  child.stderr.on('data', (chunk) => {
    output = (output + chunk).slice(-4_000);
  });
  child.stdin.on('error', () => {}); // it ended before it read everything: the exit status tells
  child.stdin.end(`alter role ${SUPERUSER} password '${password.replaceAll("'", "''")}'\n`);
  const [code] = await once(child, 'close');
  if (code !== 0 || /ERROR/.test(output)) {
    throw new PostgresError(
      `cannot set the password of the database in ${cluster}: ${output.trim().split('\n').at(-1)}`,
    );
  }
}
