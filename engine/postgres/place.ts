import { existsSync } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { type Account, closedFolder, isRoot, ownerOf, serviceAccount } from './account.ts';
import { type Binaries, binariesFor, bundledBinaries } from './binaries.ts';
import { clusterExists } from './cluster.ts';
import { clusterElsewhere, clusterPointer, ELSEWHERE, makeElsewhere, writeOwner } from './elsewhere.ts';
import { PostgresError } from './error.ts';

export type Place = Readonly<{
  cluster: string;
  binaries: Binaries;
  account: Account | undefined;
  /** For the person who starts it: why something does not lie in the data folder. */
  notes: readonly string[];
}>;

export type PlaceOptions = Readonly<{
  /** Where things go that cannot stay in our folders; default /var/lib/business-runner. */
  base?: string;
  /** Default: those that npm installed. */
  binaries?: Binaries;
}>;

/** Node's own `recursive` never returns where the system refuses a folder with ENOENT, as below /proc. */
async function makeFolders(folder: string): Promise<void> {
  if (existsSync(folder)) return;
  await makeFolders(path.dirname(folder));
  await mkdir(folder).catch((error) => {
    if (error.code !== 'EEXIST') throw error;
  });
}

/** Makes the data folder; when we are root, so that the Postgres account can pass through it. */
export async function makeDataFolder(dataDir: string): Promise<void> {
  if (existsSync(dataDir)) return;
  await makeFolders(dataDir);
  await chmod(dataDir, isRoot() ? 0o711 : 0o700);
}

async function clusterOfRoot(dataDir: string, base: string): Promise<{ cluster: string; account: Account }> {
  const recorded = clusterElsewhere(dataDir);
  if (recorded !== undefined) {
    if (existsSync(path.dirname(recorded))) {
      await writeOwner(recorded, dataDir);
      return { cluster: recorded, account: clusterExists(recorded) ? ownerOf(recorded) : serviceAccount() };
    }
    throw new PostgresError(
      `the database of ${dataDir} was in ${recorded}, which is gone; bring it back, or remove ${clusterPointer(dataDir)} to begin with an empty one`,
    );
  }
  const inside = path.join(dataDir, 'postgres');
  if (clusterExists(inside)) {
    const account = ownerOf(inside);
    const closed = closedFolder(account, inside);
    if (closed === undefined) return { cluster: inside, account };
    throw new PostgresError(
      `the database in ${inside} belongs to ${account.name}, who cannot enter ${closed}; allow it with chmod o+x ${closed}`,
    );
  }
  const account = serviceAccount();
  if (closedFolder(account, dataDir) === undefined) return { cluster: inside, account };
  return { cluster: await makeElsewhere(dataDir, base), account };
}

/**
 * Finds where the embedded Postgres of a data folder lives, whom it runs as and with which binaries. As an ordinary user
 * it is simply the data folder; root has to hand over to an account that may be unable to enter it.
 */
export async function findPlace(dataDir: string, options: PlaceOptions = {}): Promise<Place> {
  const { base = ELSEWHERE, binaries: bundled = await bundledBinaries() } = options;
  await makeDataFolder(dataDir);
  if (!isRoot()) {
    const cluster = path.join(dataDir, 'postgres');
    if (clusterExists(cluster) && ownerOf(cluster).uid !== process.getuid?.()) {
      throw new PostgresError(
        `the database in ${cluster} belongs to ${ownerOf(cluster).name}; start as that account or as root`,
      );
    }
    return { cluster, binaries: bundled, account: undefined, notes: [] };
  }
  const { cluster, account } = await clusterOfRoot(dataDir, base);
  const notes: string[] = [];
  if (path.dirname(cluster) !== dataDir) {
    const closed = closedFolder(account, dataDir) ?? dataDir;
    notes.push(
      `the database lies in ${cluster}: it runs as ${account.name}, who cannot enter ${closed}; npm run reset removes it`,
    );
  }
  const binaries = await binariesFor(account, bundled, base);
  if (binaries !== bundled) {
    notes.push(`the Postgres binaries are copied to ${path.dirname(binaries.bin)} for the account ${account.name}`);
  }
  return { cluster, binaries, account, notes };
}
