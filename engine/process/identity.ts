import { execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import { z } from 'zod';

/** A process that cannot be mistaken for a later one with the same number. */
export const identitySchema = z.object({ pid: z.int().positive(), startedAt: z.string().min(1) });
export type ProcessIdentity = z.output<typeof identitySchema>;

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

function ps(pid: number, columns: string): string | undefined {
  try {
    const text = execFileSync('ps', ['-o', columns, '-p', String(pid)], { encoding: 'utf8', stdio: 'pipe' }).trim();
    return text || undefined;
  } catch {
    return undefined;
  }
}

/** When the process started, as a text to compare; undefined when there is none (a zombie has ended). */
function startedAt(pid: number): string | undefined {
  if (process.platform !== 'linux') {
    const line = ps(pid, 'stat=,lstart=');
    return line === undefined || line.startsWith('Z') ? undefined : line.replace(/^\S+\s+/, '');
  }
  const stat = read(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The command in parentheses may itself hold spaces and parentheses: count from the last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
  // Ticks count from the boot, so the boot belongs to the identity.
  return `${read('/proc/sys/kernel/random/boot_id')?.trim() ?? ''}:${fields[19]}`;
}

export function identify(pid: number): ProcessIdentity | undefined {
  const started = startedAt(pid);
  return started === undefined ? undefined : { pid, startedAt: started };
}

/** False as soon as the process has ended, also when its number is in use again. */
export function isAlive(identity: ProcessIdentity): boolean {
  return startedAt(identity.pid) === identity.startedAt;
}

/** The command line of a process, split where the system tells where (Linux), else as one text. */
export function commandLine(pid: number): readonly string[] {
  if (process.platform !== 'linux') return [ps(pid, 'command=') ?? ''];
  return (read(`/proc/${pid}/cmdline`) ?? '').split('\0').slice(0, -1);
}

/** The working folder of a process, where the system tells it. */
export function workingFolder(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined;
  }
}
