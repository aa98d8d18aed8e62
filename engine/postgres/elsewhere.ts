import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** Where an account that cannot enter our folders finds its binaries and data. */
export const ELSEWHERE = '/var/lib/business-runner';

/** Beside a database outside of its data folder: the path of that data folder. */
const OWNER_FILE = 'data-folder';
/** In a data folder: where its database is, if not there. */
const POINTER_FILE = 'postgres.location';
/** Twelve digits of the data folder's digest, and what `mkdtemp` adds. */
const FOLDER = /^[0-9a-f]{12}-\w{6}$/;

export function clusterPointer(dataDir: string): string {
  return path.join(dataDir, POINTER_FILE);
}

/** The first line of a small file, empty where there is none. */
function lineOf(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return '';
  }
}

/** Where the database of a data folder is, if not there. */
export function clusterElsewhere(dataDir: string): string | undefined {
  return lineOf(clusterPointer(dataDir)) || undefined;
}

/** The data folder of a database that lies outside of it; undefined where nobody wrote it down. */
export function ownerElsewhere(cluster: string): string | undefined {
  return lineOf(path.join(path.dirname(cluster), OWNER_FILE)) || undefined;
}

/** Whole or not at all: half a pointer would lead to an empty database. */
async function writeLine(file: string, line: string): Promise<void> {
  await writeFile(`${file}.new`, `${line}\n`);
  await rename(`${file}.new`, file);
}

/** Makes a folder below `base` for the database of a data folder; each of the two names the other. */
export async function makeElsewhere(dataDir: string, base: string): Promise<string> {
  await mkdir(base, { recursive: true });
  await chmod(base, 0o755);
  // A removed data folder must not come back with an old database: the name is new each time.
  const name = createHash('sha256').update(dataDir).digest('hex').slice(0, 12);
  const folder = await mkdtemp(path.join(base, `${name}-`));
  await chmod(folder, 0o711);
  const cluster = path.join(folder, 'postgres');
  await writeOwner(cluster, dataDir);
  await writeLine(clusterPointer(dataDir), cluster);
  return cluster;
}

/** Writes down whose database this is, also beside one that an earlier version made. */
export async function writeOwner(cluster: string, dataDir: string): Promise<void> {
  const file = path.join(path.dirname(cluster), OWNER_FILE);
  if (lineOf(file) !== dataDir) await writeLine(file, dataDir);
}

export type Orphan = Readonly<{ folder: string; dataDir: string | undefined }>;

/** Folders of databases that no data folder names any more: it was removed, or began anew. */
export function orphanedFolders(base: string = ELSEWHERE): Orphan[] {
  if (!existsSync(base)) return [];
  const folders = readdirSync(base).filter((name) => FOLDER.test(name));
  return folders.flatMap((name) => {
    const folder = path.join(base, name);
    const dataDir = ownerElsewhere(path.join(folder, 'postgres'));
    const isNamed = dataDir !== undefined && clusterElsewhere(dataDir) === path.join(folder, 'postgres');
    return isNamed ? [] : [{ folder, dataDir }];
  });
}
