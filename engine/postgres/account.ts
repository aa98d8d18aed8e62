import { readFileSync, realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import { PostgresError } from './error.ts';

/** Whom Postgres runs as when we are root, which it refuses to be. */
export type Account = Readonly<{ name: string; uid: number; gid: number }>;

function accounts(): readonly Account[] {
  const rows = readFileSync('/etc/passwd', 'utf8').split('\n');
  return rows.flatMap((row) => {
    const [name, , uid, gid] = row.split(':');
    // macOS writes nobody as -2.
    return name && /^-?\d+$/.test(uid ?? '') && !row.startsWith('#')
      ? [{ name, uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }]
      : [];
  });
}

export function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** The account for a new cluster: `postgres` where the machine has it, else `nobody`. */
export function serviceAccount(): Account {
  const known = accounts();
  for (const name of ['postgres', '_postgres', 'nobody']) {
    const account = known.find((row) => row.name === name && row.uid !== 0);
    if (account) return account;
  }
  throw new PostgresError(
    'Postgres does not run as root, and this machine has neither an account postgres nor nobody; start as another user',
  );
}

/** The account that owns an existing folder: a cluster stays with whoever made it. */
export function ownerOf(folder: string): Account {
  const { uid, gid } = statSync(folder);
  return { name: accounts().find((row) => row.uid === uid)?.name ?? String(uid), uid, gid };
}

/** Whether the mode of `file` gives the account the bits (4 read, 1 search); supplementary groups do not count. */
function allows(account: Account, file: string, bits: number): boolean {
  const { mode, uid, gid } = statSync(file);
  const shift = uid === account.uid ? 6 : gid === account.gid ? 3 : 0;
  return ((mode >> shift) & bits) === bits;
}

/** The topmost folder on the way to `target` (itself included) that the account cannot enter; links are followed. */
export function closedFolder(account: Account, target: string): string | undefined {
  const parts = path.resolve(target).split(path.sep).filter(Boolean);
  const folders = ['/', ...parts.map((_, index) => `/${parts.slice(0, index + 1).join('/')}`)];
  const closed = folders.find((folder) => !allows(account, folder, 1));
  const real = realpathSync(target);
  return closed ?? (real === path.resolve(target) ? undefined : closedFolder(account, real));
}

export function canRead(account: Account, file: string): boolean {
  const real = realpathSync(file);
  return (
    closedFolder(account, path.dirname(file)) === undefined &&
    closedFolder(account, path.dirname(real)) === undefined &&
    allows(account, real, 4)
  );
}
