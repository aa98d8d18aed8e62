import { createHash, randomUUID } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { identify, identitySchema, isAlive, type ProcessIdentity } from './identity.ts';

/** A live process holds the lock. */
export class LockedError extends Error {
  override name = 'LockedError';
  readonly pid: number;

  constructor(file: string, pid: number) {
    super(`process ${pid} holds ${file}`);
    this.pid = pid;
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

function holderOf(text: string): ProcessIdentity | undefined {
  try {
    return identitySchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

function take(file: string, candidate: string): void {
  for (;;) {
    try {
      linkSync(candidate, file); // atomic, and fails when the file is there
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const text = read(file);
    if (text === undefined) continue;
    const holder = holderOf(text);
    if (holder && isAlive(holder)) throw new LockedError(file, holder.pid);
    // Its holder died. Two processes may see that at once, and the slower must not replace the new lock of the faster:
    // only who holds the lock named after this very content may replace it.
    const release = acquireLock(`${file}.${createHash('sha256').update(text).digest('hex').slice(0, 16)}`);
    try {
      if (read(file) !== text) continue;
      renameSync(candidate, file);
      return;
    } finally {
      release();
    }
  }
}

/**
 * Takes a lock file that names this process; one whose process has ended, `kill -9` included, is taken over.
 * Returns the release.
 * @throws LockedError when a live process holds it.
 */
export function acquireLock(file: string): () => void {
  const mine = JSON.stringify(identify(process.pid));
  const candidate = `${file}.${randomUUID()}`;
  try {
    writeFileSync(candidate, mine, { flag: 'wx' });
    take(file, candidate);
  } finally {
    rmSync(candidate, { force: true });
  }
  return () => {
    if (read(file) === mine) rmSync(file, { force: true });
  };
}
