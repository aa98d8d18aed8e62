import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

/** The numbers of the processes whose parent this is. */
export async function childrenOf(pid: number): Promise<number[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=']);
  const rows = stdout.split('\n').map((row) => row.trim().split(/\s+/).map(Number));
  return rows.flatMap(([child = 0, parent]) => (parent === pid ? [child] : []));
}

/** The process with all that descend from it. */
export async function treeOf(pid: number): Promise<number[]> {
  const below = await Promise.all((await childrenOf(pid)).map(treeOf));
  return [pid, ...below.flat()];
}

/** Waits for a condition; `what` says which when it does not come. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  withinMs = 60_000,
): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`waited ${withinMs} ms in vain for ${what}`);
    await sleep(20);
  }
}
