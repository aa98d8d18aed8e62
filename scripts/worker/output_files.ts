import { isUtf8 } from 'node:buffer';
import type { Dirent } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import path from 'node:path';
import { type Workspace, WorkspaceError } from './workspace.ts';

export type OutputFile = Readonly<{ path: string; file: string; size: number }>;
/** What is not uploaded, under a name that can be shown, and why. */
export type LeftOut = Readonly<{ path: string; why: string }>;

type Found = { files: OutputFile[]; leftOut: LeftOut[] };

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code;

/** A name that is no text, with its bytes beyond ASCII as `\\xNN`. */
function shown(name: Buffer): string {
  return name
    .toString('latin1')
    .replace(/[^\x20-\x7e]/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

function kindOf(entry: Dirent<Buffer>): string {
  if (entry.isSymbolicLink()) return 'a symbolic link';
  if (entry.isFIFO()) return 'a named pipe';
  if (entry.isSocket()) return 'a socket';
  return 'no regular file';
}

/** Why this entry is not uploaded; undefined for a file or folder that is. Git's folders have thousands of files. */
function reasonAgainst(entry: Dirent<Buffer>): string | undefined {
  if (!isUtf8(entry.name)) return 'its name is not UTF-8';
  if (entry.name.toString().toLowerCase() === '.git') return 'the folder of a repository';
  return entry.isFile() || entry.isDirectory() ? undefined : kindOf(entry);
}

async function walk(folder: string, prefix: string, found: Found): Promise<void> {
  const leaveOut = (name: string, why: string) => void found.leftOut.push({ path: prefix + name, why });
  const entries = await readdir(folder, { withFileTypes: true, encoding: 'buffer' });
  for (const entry of entries.sort((a, b) => Buffer.compare(a.name, b.name))) {
    const against = reasonAgainst(entry);
    if (against) {
      leaveOut(isUtf8(entry.name) ? entry.name.toString() : shown(entry.name), against);
      continue;
    }
    const name = entry.name.toString();
    const file = path.join(folder, name);
    try {
      if (entry.isDirectory()) await walk(file, `${prefix}${name}/`, found);
      else found.files.push({ path: prefix + name, file, size: (await lstat(file)).size });
    } catch (error) {
      // Removed meanwhile by what the command left running, or not ours to read.
      leaveOut(name, `it cannot be read (${codeOf(error)})`);
    }
  }
}

/**
 * Every regular file below the output folder, by path, and all that is left out. Links are never followed, wherever they lead.
 * @throws WorkspaceError when something else is in the place of the folder
 */
export async function outputFiles(workspace: Workspace): Promise<Readonly<Found>> {
  const found: Found = { files: [], leftOut: [] };
  try {
    // A command may have put a link there.
    if (!(await lstat(workspace.outputs)).isDirectory()) throw new WorkspaceError('OUTPUT_DIR is no folder any more');
    await walk(workspace.outputs, '', found);
  } catch (error) {
    if (error instanceof WorkspaceError) throw error;
    const why = codeOf(error) === 'ENOENT' ? 'the command removed it' : `it cannot be read (${codeOf(error)})`;
    found.leftOut.push({ path: 'OUTPUT_DIR', why });
  }
  return found;
}
