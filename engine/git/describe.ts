import { oneLine } from '../one_line.ts';
import type { Snapshot } from './mirrors.ts';
import { GitFailedError, gitText } from './program.ts';
import type { PushArguments } from './push_action.ts';
import type { RefUpdate } from './push_request.ts';

const MAX_COMMITS = 50;
const MAX_FILES = 200;
const MAX_TEXT = 300;
/** Beyond it the changes of files are not counted: a person reads them at the provider. */
const MAX_DIFF_BYTES = 32 * 1024 * 1024;

type Place = Readonly<{ repository: string; snapshot: Snapshot; signal: AbortSignal }>;
type Update = RefUpdate & { newOid: string };

/** What the push brings: of a branch since its old commit, of a new branch what the provider has on none. */
function rangeOf({ oldOid, newOid }: Update): readonly string[] {
  return oldOid === null ? [newOid, '--not', '--all'] : [newOid, `^${oldOid}`];
}

async function commitsOf(update: Update, { repository, signal }: Place) {
  const range = rangeOf(update);
  const format = '--format=%H%x00%an%x00%aI%x00%s';
  const counted = await gitText({ folder: repository, args: ['rev-list', '--count', ...range], signal });
  const args = ['log', '-z', `--max-count=${MAX_COMMITS}`, '--no-show-signature', format, ...range];
  const fields = (await gitText({ folder: repository, args, signal })).split('\0');
  const commits: PushArguments['commits'][number][] = [];
  for (let at = 0; at + 3 < fields.length; at += 4) {
    const [oid = '', author = '', authoredAt = '', subject = ''] = fields.slice(at, at + 4);
    commits.push({
      ref: update.ref,
      oid,
      author: oneLine(author, 100),
      authoredAt,
      subject: oneLine(subject, MAX_TEXT),
    });
  }
  return { commits, count: Number(counted) };
}

/** What the changes of files are counted from; undefined: from nothing. */
async function baseOf(
  { oldOid, newOid }: Update,
  { repository, snapshot, signal }: Place,
): Promise<string | undefined> {
  if (oldOid !== null) return oldOid;
  const branch = snapshot.defaultBranch === undefined ? undefined : snapshot.refs.get(snapshot.defaultBranch);
  if (branch === undefined) return undefined;
  try {
    return (await gitText({ folder: repository, args: ['merge-base', branch, newOid], signal })).trim();
  } catch (error) {
    // Histories without a common commit.
    if (error instanceof GitFailedError && error.exitCode === 1) return undefined;
    throw error;
  }
}

type File = PushArguments['files'][number];

async function filesOf(update: Update, place: Place): Promise<File[] | undefined> {
  const { repository: folder, signal } = place;
  const base =
    (await baseOf(update, place)) ??
    (await gitText({ folder, args: ['hash-object', '-t', 'tree', '--stdin'], signal })).trim();
  const args = [
    'diff-tree',
    '-r',
    '-z',
    '--numstat',
    '--no-renames',
    '--no-ext-diff',
    '--no-textconv',
    base,
    update.newOid,
  ];
  try {
    const text = await gitText({ folder, args, signal, maxOutput: MAX_DIFF_BYTES });
    return text.split('\0').flatMap((line) => {
      const [, added, removed, path] = /^(\d+|-)\t(\d+|-)\t(.+)$/s.exec(line) ?? [];
      if (added === undefined || removed === undefined || path === undefined) return [];
      // Of files that are no text there are no lines to count.
      const count = (digits: string) => (digits === '-' ? null : Number(digits));
      return [{ ref: update.ref, path: oneLine(path, MAX_TEXT), additions: count(added), deletions: count(removed) }];
    });
  } catch (error) {
    if (error instanceof GitFailedError && error.exitCode === null) return undefined;
    throw error;
  }
}

/** What a push does, for the person who decides about it. */
export async function describePush(
  repositoryName: string,
  updates: readonly Update[],
  place: Place,
): Promise<PushArguments> {
  const commits: PushArguments['commits'][number][] = [];
  const files: File[] = [];
  let commitCount = 0;
  let isCounted = true;
  for (const update of updates) {
    const found = await commitsOf(update, place);
    commitCount += found.count;
    commits.push(...found.commits);
    const changed = await filesOf(update, place);
    if (changed) files.push(...changed);
    else isCounted = false;
  }
  const sum = (of: 'additions' | 'deletions') => files.reduce((total, file) => total + (file[of] ?? 0), 0);
  return {
    repository: repositoryName,
    refs: updates.map(({ ref, oldOid, newOid }) => ({
      ref,
      oldOid,
      newOid,
      isDefaultBranch: place.snapshot.defaultBranch === undefined ? null : ref === place.snapshot.defaultBranch,
    })),
    commits: commits.slice(0, MAX_COMMITS),
    commitCount,
    files: files.slice(0, MAX_FILES),
    changes: isCounted ? { files: files.length, additions: sum('additions'), deletions: sum('deletions') } : null,
  };
}

const plural = (count: number, one: string) => `${count} ${one}${count === 1 ? '' : 's'}`;

/** Whom, what, how much, where: a person decides by it alone. */
export function summaryOf({ repository, refs, commits, commitCount, changes }: PushArguments): string {
  const branches = refs.map(({ ref, oldOid, isDefaultBranch }) => {
    const kind = oldOid === null ? 'new branch' : isDefaultBranch ? 'default branch' : 'branch';
    return `${kind} ${ref.slice('refs/heads/'.length)}`;
  });
  const changed = changes
    ? `${plural(changes.files, 'file')} changed, +${changes.additions} −${changes.deletions}`
    : 'more changes than are counted';
  const subject = commits[0] ? `. Last commit: ${commits[0].subject}` : '';
  return oneLine(
    `Push ${plural(commitCount, 'commit')} to ${repository}: ${branches.join(', ')} (${changed})${subject}`,
    1_900,
  );
}
