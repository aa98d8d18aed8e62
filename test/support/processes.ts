import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { identify, type ProcessIdentity } from '../../engine/process/identity.ts';

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

/** Who they are, also when their numbers are used again. */
export function identities(pids: readonly number[]): ProcessIdentity[] {
  return pids.map(identify).filter((identity) => identity !== undefined);
}
