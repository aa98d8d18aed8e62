import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { identify, identitySchema, isAlive } from '../process/identity.ts';
import { acquireLock, LockedError } from '../process/lock.ts';

const OWNER = 'owner.json';
/** One without an owner was cut off while it was made. */
const UNOWNED_MS = 3_600_000;
const LONGEST_WAIT_MS = 200;

/** Waits for the lock of a file, which ends with its process. @throws the signal's reason */
export async function waitForLock(file: string, signal: AbortSignal): Promise<() => void> {
  for (let ms = 5; ; ms = Math.min(LONGEST_WAIT_MS, ms * 2)) {
    signal.throwIfAborted();
    try {
      return acquireLock(file);
    } catch (error) {
      if (!(error instanceof LockedError)) throw error;
    }
    await pause(ms, undefined, { signal }).catch(() => {});
  }
}

/** A private folder that is removed when `run` ends; that of a process that died is removed by a later one. */
export async function withFolder<T>(parent: string, run: (folder: string) => Promise<T>): Promise<T> {
  const folder = await openFolder(parent);
  try {
    return await run(folder);
  } finally {
    await removeFolder(folder);
  }
}

export async function openFolder(parent: string): Promise<string> {
  const folder = path.join(parent, randomUUID());
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(path.join(folder, OWNER), JSON.stringify(identify(process.pid)));
  return folder;
}

export async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 });
}

/** Takes a folder away in one step, so that nobody meets a half of it. */
export async function discardFolder(folder: string): Promise<void> {
  const trash = `${folder}.${randomUUID()}.trash`;
  try {
    await rename(folder, trash);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  await removeFolder(trash);
}

async function isAbandoned(folder: string): Promise<boolean> {
  try {
    const owner = identitySchema.safeParse(JSON.parse(await readFile(path.join(folder, OWNER), 'utf8')));
    if (owner.success) return !isAlive(owner.data);
  } catch {
    // Not written yet, or never.
  }
  const made = await stat(folder).catch(() => undefined);
  return made !== undefined && Date.now() - made.mtimeMs > UNOWNED_MS;
}

/** Removes private folders whose processes have ended. */
export async function removeAbandoned(parent: string): Promise<number> {
  let removed = 0;
  for (const name of await readdir(parent).catch(() => [])) {
    const folder = path.join(parent, name);
    if (!(await isAbandoned(folder))) continue;
    await removeFolder(folder);
    removed += 1;
  }
  return removed;
}
