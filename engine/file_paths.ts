// Paths stand in unique indexes beside two UUIDs, and an index entry of Postgres has at most 2704 bytes.
const MAX_PATH_BYTES = 1000;

/** What people cannot see, or see elsewhere than it stands: controls, line separators, marks of bidirectional text. */
const UNSEEN = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;
/** Some file systems leave these out, so that `.git` with one of them in it is `.git` there. */
const IGNORED = /\p{Default_Ignorable_Code_Point}/gu;
/** The folder of a repository, also as Windows reads it: whoever lays out files may write hooks that git runs. */
const REPOSITORY = /^(?:\.git[. ]*|git~1)$/i;

/** Whether a name can be shown as it is. */
export function isSeen(text: string): boolean {
  return text.isWellFormed() && !UNSEEN.test(text);
}

/**
 * The rule of all paths of files: inputs, outputs, artifacts and documents. Relative, forward slashes, no empty, `.`, `..` or
 * `.git` part, nothing unseen, 1000 bytes.
 */
export function isFilePath(text: string): boolean {
  if (Buffer.byteLength(text) > MAX_PATH_BYTES || text.includes('\\') || !isSeen(text)) return false;
  return text.split('/').every((part) => {
    return part !== '' && part !== '.' && part !== '..' && !REPOSITORY.test(part.replace(IGNORED, ''));
  });
}

export const FILE_PATH_RULE =
  'must be a relative path of at most 1000 bytes without empty, ., .. or .git parts, backslashes, controls and marks of bidirectional text';

/** Two paths of one key are one file where file systems look at neither case nor normalization. */
export function layoutKey(path: string): string {
  return path.normalize('NFC').toLowerCase().normalize('NFC');
}

export type LayoutConflict = Readonly<{ index: number; kind: 'same' | 'below'; message: string }>;

type Entry = Readonly<{ key: string; path: string; index: number }>;

function conflictOf(a: Entry, b: Entry): LayoutConflict {
  const [first, { path, index }] = a.index < b.index ? [a, b] : [b, a];
  if (a.key !== b.key) {
    const message = a.index < b.index ? `lies below the file ${first.path}` : `is a folder for ${first.path}`;
    return { index, kind: 'below', message };
  }
  const message = first.path === path ? 'is named twice' : `is the same file as ${first.path} on many file systems`;
  return { index, kind: 'same', message };
}

/**
 * The paths that cannot be laid out beside those before them, by their position: a file where another path has a folder, or one
 * path twice.
 * @param taken files that are there already
 * @param folders names that no file may take
 */
export function layoutConflicts(
  paths: readonly string[],
  { taken = [], folders = [] }: Readonly<{ taken?: readonly string[]; folders?: readonly string[] }> = {},
): LayoutConflict[] {
  // What lies below a path follows it at once in this order.
  const entryOf = (path: string, index: number): Entry => ({ key: layoutKey(path).replaceAll('/', '\0'), path, index });
  const entries = [...taken.map((path) => entryOf(path, -1)), ...paths.map(entryOf)];
  entries.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : a.index - b.index));
  const reserved = new Set(folders.map((path) => entryOf(path, -1).key));
  const conflicts = new Map<number, LayoutConflict>();
  let above: Entry | undefined;
  for (const entry of entries) {
    if (reserved.has(entry.key) && entry.index >= 0) {
      const message = 'is the name of a folder that every run has';
      conflicts.set(entry.index, { index: entry.index, kind: 'below', message });
    }
    if (above && (entry.key === above.key || entry.key.startsWith(`${above.key}\0`))) {
      const conflict = conflictOf(above, entry);
      if (conflict.index >= 0 && !conflicts.has(conflict.index)) conflicts.set(conflict.index, conflict);
    } else {
      above = entry;
    }
  }
  return [...conflicts.values()].sort((a, b) => a.index - b.index);
}
