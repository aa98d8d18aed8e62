import { randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createCoder, seedRepository, startGit, TOKEN } from '../../test/api/git/support.ts';
import { openFolder } from '../../test/support/folders.ts';
import { gitDone } from '../../test/support/git_origin.ts';
import { median } from './measure.ts';

const MEGABYTE = 1024 * 1024;

export type CloneTimes = Readonly<{ originMs: number; gatewayMs: number; peakMegabytes: number }>;

/**
 * Clones of a repository of noise, from a server of git on loopback and through the gateway in turns: medians of both, and what the
 * process of both servers grew by at most. They share a processor, so that the gateway looks slower than it is.
 */
export async function measureClones(megabytes: number, rounds: number): Promise<CloneTimes> {
  const ends: (() => unknown)[] = [];
  const t = { teardown: (end: () => unknown) => void ends.unshift(end) };
  try {
    const world = await startGit(t);
    const bare = await seedRepository(t, world.origin);
    const folder = await openFolder(t);
    const work = path.join(folder, 'work');
    await gitDone(folder, 'clone', '--quiet', bare, work);
    for (let number = 0; number < megabytes; number += 1) {
      await writeFile(path.join(work, `noise-${number}`), randomBytes(MEGABYTE));
    }
    await gitDone(work, 'add', '--all');
    await gitDone(work, 'commit', '--quiet', '--message', 'Add noise');
    await gitDone(work, 'push', '--quiet', 'origin', 'HEAD:main');
    const coder = await createCoder(world);
    const direct = `${world.origin.origin.replace('://', `://x-access-token:${TOKEN}@`)}/acme/shop.git`;
    const before = process.memoryUsage.rss();
    let peak = 0;
    const timer = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage.rss() - before);
    }, 200);
    t.teardown(() => clearInterval(timer));
    async function clone(url: string): Promise<number> {
      const started = performance.now();
      await gitDone(folder, 'clone', '--quiet', '--bare', url, 'clone.git');
      const ms = performance.now() - started;
      await rm(path.join(folder, 'clone.git'), { recursive: true });
      return ms;
    }
    const times: [direct: number, through: number][] = [];
    for (let round = 0; round < rounds; round += 1) times.push([await clone(direct), await clone(coder.url())]);
    return {
      originMs: median(times.map(([ms]) => ms)),
      gatewayMs: median(times.map(([, ms]) => ms)),
      peakMegabytes: peak / MEGABYTE,
    };
  } finally {
    for (const end of ends) await end();
  }
}
