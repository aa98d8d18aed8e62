import { realpathSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { commandLine, identify, isAlive, workingFolder } from '../process/identity.ts';
import { PostgresError } from './error.ts';

const GRACE_MS = 10_000;

/** Whether that process is the postmaster of this cluster: a recycled number is somebody else's. */
function isPostmasterOf(cluster: string, pid: number): boolean {
  const words = commandLine(pid);
  if (words.length === 1) return words[0]?.includes('postgres') === true && words[0].includes(`-D ${cluster}`);
  if (!words[0] || !/^(postgres|postmaster)$/.test(path.basename(words[0]))) return false;
  // A cluster that was moved while its Postgres ran is known by the working folder.
  return words[words.indexOf('-D') + 1] === cluster || workingFolder(pid) === realpathSync(cluster);
}

/**
 * Ends a Postgres of this cluster whose parent died (the caller holds the cluster's lock, so nobody owns it), and makes
 * a stale pid file harmless.
 */
export async function stopOrphan(cluster: string): Promise<void> {
  const pidFile = path.join(cluster, 'postmaster.pid');
  const text = await readFile(pidFile, 'utf8').catch(() => '');
  const pid = Number.parseInt(text, 10);
  const identity = pid > 0 ? identify(pid) : undefined;
  if (!identity) return;
  if (!isPostmasterOf(cluster, pid)) {
    // Postgres would refuse to start because "another postmaster" lives. It takes a file that names its parent for stale.
    // The file has to stay: it leads Postgres to the shared memory of backends that may still be alive.
    await writeFile(pidFile, text.replace(/^\d+/, String(process.pid)));
    return;
  }
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') return;
      throw new PostgresError(
        `a Postgres left from an earlier start runs as process ${pid} of another user; stop it first`,
        {
          cause: error,
        },
      );
    }
    const deadline = Date.now() + GRACE_MS;
    while (Date.now() < deadline) {
      if (!isAlive(identity)) return;
      await sleep(20);
    }
  }
  throw new PostgresError(`a Postgres left from an earlier start, process ${pid}, does not stop`);
}
