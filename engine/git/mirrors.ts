import { createHash } from 'node:crypto';
import { link, mkdir, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { acquireLock, LockedError } from '../process/lock.ts';
import { discardFolder, removeFolder, waitForLock } from './folders.ts';
import { GitFailedError, gitText, runGit } from './program.ts';
import { askRemote, type Remote } from './remote.ts';

/** A repository of one integration of one organization; nothing of a mirror is shared with another one. */
export type MirrorOptions = Readonly<{
  /** Holds all mirrors. */
  folder: string;
  /** All of them together. */
  maxBytes: number;
  /** `needed`: an action that is open needs the mirrors of the integration. `gone`: there is no such integration any more. */
  useOf(organizationId: string, integrationId: string): Promise<'needed' | 'idle' | 'gone'>;
}>;

/** What a repository of its own has of the provider's. */
export type Snapshot = Readonly<{
  /** By full name. */
  refs: ReadonlyMap<string, string>;
  /** Full name of the default branch; undefined: there is none yet. */
  defaultBranch: string | undefined;
}>;

const REFSPECS = ['+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*'] as const;
const MANY_PACKS = 20;
/** How often integrations are looked for that are gone. */
const LOOK_MS = 600_000;
const WATCH_MS = 1_000;
const MAX_REFS_BYTES = 64 * 1024 * 1024;

/** The repository is larger than what mirrors may take. */
export class MirrorTooLargeError extends Error {
  override name = 'MirrorTooLargeError';
}

const packs = (repository: string) => path.join(repository, 'objects', 'pack');

async function sizeOf(repository: string): Promise<number> {
  let bytes = 0;
  for (const name of await readdir(packs(repository)).catch(() => [])) {
    bytes += (await stat(path.join(packs(repository), name)).catch(() => undefined))?.size ?? 0;
  }
  return bytes;
}

export async function initRepository(repository: string, signal: AbortSignal): Promise<void> {
  await mkdir(repository, { recursive: true, mode: 0o700 });
  const args = ['init', '--quiet', '--bare', '--template=', '--initial-branch=main', '.'];
  await runGit({ folder: repository, args, signal });
}

async function checkSize(repository: string, maxBytes: number): Promise<void> {
  if ((await sizeOf(repository)) > maxBytes) throw new MirrorTooLargeError(`it has more than ${maxBytes} bytes`);
}

/** Ends a command when the repository that it fills outgrows its bound. */
function watched(repository: string, maxBytes: number, signal: AbortSignal) {
  const controller = new AbortController();
  const timer = setInterval(async () => {
    await checkSize(repository, maxBytes).catch((error: unknown) => controller.abort(error));
  }, WATCH_MS);
  return { signal: AbortSignal.any([signal, controller.signal]), stop: () => clearInterval(timer) };
}

async function defaultBranch(remote: Remote, folder: string, signal: AbortSignal): Promise<string | undefined> {
  const text = await askRemote(remote, { folder, args: ['ls-remote', '--symref', remote.address, 'HEAD'], signal });
  return /^ref: (refs\/heads\/\S+)\tHEAD$/m.exec(text)?.[1];
}

async function readRefs(repository: string, signal: AbortSignal): Promise<Map<string, string>> {
  const args = ['for-each-ref', '--format=%(objectname) %(refname)'];
  const text = await gitText({ folder: repository, args, signal, maxOutput: MAX_REFS_BYTES });
  const lines = text.split('\n').filter((line) => line !== '');
  return new Map(lines.map((line) => [line.slice(line.indexOf(' ') + 1), line.slice(0, line.indexOf(' '))]));
}

/** Fetches everything that is new. A fetch that is cut off leaves `dirty`: the next one begins anew. */
async function refresh(remote: Remote, repository: string, maxBytes: number, signal: AbortSignal): Promise<void> {
  const dirty = path.join(repository, 'dirty');
  const isClean =
    (await stat(path.join(repository, 'HEAD')).catch(() => undefined)) && !(await stat(dirty).catch(() => undefined));
  if (!isClean) {
    await discardFolder(repository);
    await mkdir(repository, { recursive: true, mode: 0o700 });
    await writeFile(dirty, '');
    await initRepository(repository, signal);
  } else await writeFile(dirty, '');
  const watch = watched(repository, maxBytes, signal);
  try {
    const args = ['fetch', '--quiet', '--prune', '--no-tags', '--no-write-fetch-head', remote.address, ...REFSPECS];
    await askRemote(remote, { folder: repository, args, signal: watch.signal });
    if ((await readdir(packs(repository))).filter((name) => name.endsWith('.pack')).length > MANY_PACKS) {
      await runGit({ folder: repository, args: ['repack', '-q', '-d', '--geometric=2'], signal: watch.signal });
    }
  } finally {
    watch.stop();
  }
  await checkSize(repository, maxBytes);
  await rm(dirty, { force: true });
}

/** Hard links: what the mirror does afterwards, its removal included, changes nothing here, and nothing is copied. */
async function linkObjects(mirror: string, repository: string): Promise<void> {
  const names = await readdir(packs(mirror));
  await mkdir(packs(repository), { recursive: true });
  // A pack counts from its index on.
  const isIndex = (name: string) => Number(name.endsWith('.idx'));
  for (const name of names.sort((one, other) => isIndex(one) - isIndex(other))) {
    if (/^pack-[0-9a-f]+\.(?:pack|idx|rev)$/.test(name)) {
      await link(path.join(packs(mirror), name), path.join(packs(repository), name));
    }
  }
}

async function writeRefs(repository: string, refs: ReadonlyMap<string, string>): Promise<void> {
  const lines = [...refs].map(([name, oid]) => `${oid} ${name}\n`);
  await writeFile(path.join(repository, 'packed-refs'), lines.join(''));
}

/** Mirrors of repositories on this machine's disk. Nothing depends on one: what is not there is fetched. */
export function openMirrors(options: MirrorOptions) {
  const { folder, maxBytes, useOf } = options;
  let lookedAt = Number.NEGATIVE_INFINITY;

  function placeOf({ name, connection }: Remote): string {
    const { organizationId, integrationId } = connection.target;
    const id = createHash('sha256').update(name.toLowerCase()).digest('hex').slice(0, 32);
    return path.join(folder, organizationId, integrationId, id);
  }

  /** What there is, the longest unused first. */
  async function list() {
    const found: { place: string; organizationId: string; integrationId: string; bytes: number; usedMs: number }[] = [];
    for (const organizationId of await readdir(folder).catch(() => [])) {
      for (const integrationId of await readdir(path.join(folder, organizationId)).catch(() => [])) {
        const parent = path.join(folder, organizationId, integrationId);
        for (const name of await readdir(parent).catch(() => [])) {
          const place = path.join(parent, name.replace(/\.git$/, ''));
          if (name.endsWith('.trash')) await removeFolder(path.join(parent, name));
          const used = name.endsWith('.git') && (await stat(path.join(parent, name)).catch(() => undefined));
          if (!used) continue;
          const bytes = await sizeOf(path.join(parent, name));
          found.push({ place, organizationId, integrationId, bytes, usedMs: used.mtimeMs });
        }
      }
    }
    return found.sort((one, other) => one.usedMs - other.usedMs);
  }

  /** Removes a mirror that nobody works with. */
  async function discard(place: string): Promise<boolean> {
    try {
      const release = acquireLock(`${place}.lock`);
      await discardFolder(`${place}.git`).finally(release);
      return true;
    } catch (error) {
      if (error instanceof LockedError) return false;
      throw error;
    }
  }

  /** Removes mirrors of integrations that are gone, and what was longest unused until the rest fits. */
  async function tidy(kept: string): Promise<void> {
    const all = await list();
    let total = all.reduce((sum, { bytes }) => sum + bytes, 0);
    if (total <= maxBytes && performance.now() - lookedAt < LOOK_MS) return;
    lookedAt = performance.now();
    for (const { place, organizationId, integrationId, bytes } of all) {
      if (place === kept) continue;
      const use = await useOf(organizationId, integrationId);
      const goes = use === 'gone' || (use === 'idle' && total > maxBytes);
      if (goes && (await discard(place))) total -= bytes;
    }
  }

  return {
    /**
     * Brings the mirror up to date, and makes a repository of it that is the caller's own.
     * @throws ProviderError, GitMissingError, MirrorTooLargeError, the signal's reason
     */
    async snapshot(remote: Remote, repository: string, signal: AbortSignal): Promise<Snapshot> {
      const place = placeOf(remote);
      await mkdir(path.dirname(place), { recursive: true, mode: 0o700 });
      await initRepository(repository, signal);
      const branch = defaultBranch(remote, repository, signal);
      // Its failure is that of the fetch too.
      branch.catch(() => {});
      const release = await waitForLock(`${place}.lock`, signal);
      try {
        const mirror = `${place}.git`;
        await refresh(remote, mirror, maxBytes, signal);
        const now = new Date();
        await utimes(mirror, now, now);
        const refs = await readRefs(mirror, signal);
        await linkObjects(mirror, repository);
        await writeRefs(repository, refs);
        return { refs, defaultBranch: await branch };
      } catch (error) {
        // What is left of a fetch may not even be a repository.
        if (error instanceof GitFailedError || error instanceof MirrorTooLargeError)
          await discardFolder(`${place}.git`);
        throw error;
      } finally {
        release();
        await tidy(place);
      }
    },
  };
}

export type Mirrors = ReturnType<typeof openMirrors>;
