import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TearDown } from './database.ts';

const FILLING = '.filling';

function mount(folder: string, options: string) {
  return spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder], { encoding: 'utf8' });
}

function unmount(folder: string): void {
  // Lazily: a process that a failed test left behind may still have files open there.
  spawnSync('umount', ['-l', folder]);
}

/** Why no small disk can be mounted here; false: it can. */
export async function noSmallDisks(): Promise<string | false> {
  const folder = await mkdtemp(path.join(tmpdir(), 'runner-test-'));
  const { status, stderr, error } = mount(folder, 'size=1m');
  if (status === 0) unmount(folder);
  await rm(folder, { recursive: true });
  return status === 0 ? false : `nothing can be mounted: ${(error?.message ?? stderr).trim()}`;
}

export type SmallDisk = Readonly<{
  folder: string;
  /** Takes all the room that is left. */
  fill: () => void;
  /** Gives it back. */
  empty: () => void;
}>;

/** Makes `folder` a disk of its own; it is unmounted at the end, before the folder is removed. */
export function mountSmallDisk(t: TearDown, folder: string, megabytes: number, mode = '711'): SmallDisk {
  mkdirSync(folder, { recursive: true });
  const { status, stderr } = mount(folder, `size=${megabytes}m,mode=${mode}`);
  if (status !== 0) throw new Error(`mount: ${stderr}`);
  t.teardown(async () => unmount(folder));
  const filling = path.join(folder, FILLING);
  return {
    folder,
    fill() {
      const descriptor = openSync(filling, 'a');
      for (let length = 1024 * 1024; length >= 1; ) {
        try {
          writeSync(descriptor, Buffer.alloc(length));
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
          length = Math.floor(length / 2);
        }
      }
      closeSync(descriptor);
    },
    empty: () => rmSync(filling, { force: true }),
  };
}
