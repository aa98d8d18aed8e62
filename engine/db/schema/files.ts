import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

/** A migration that cannot go on: one line for the person who runs it. */
export class MigrateError extends Error {
  override name = 'MigrateError';
}

/** `path` is relative to the folder `sql`, with `/`. */
export type SqlFile = Readonly<{ path: string; text: string; sha256: string }>;

export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

export async function sqlFile(sqlFolder: string, name: string): Promise<SqlFile> {
  const text = await readFile(path.join(sqlFolder, name), 'utf8');
  return { path: name, text, sha256: digestOf(text) };
}

/** All .sql files below `sql/<folder>`, sorted by path in code point order: the same everywhere. */
export async function sqlFiles(sqlFolder: string, folder: string): Promise<readonly SqlFile[]> {
  const names = await readdir(path.join(sqlFolder, folder), { recursive: true }).catch((error) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  });
  const paths = names
    .filter((name) => name.endsWith('.sql'))
    .map((name) => path.posix.join(folder, ...name.split(path.sep)))
    .sort((a, b) => (a < b ? -1 : 1));
  return Promise.all(paths.map((name) => sqlFile(sqlFolder, name)));
}

/** What Postgres says about a file, with the line it points at. */
export function explain(file: SqlFile, error: unknown): MigrateError {
  const known = error as { message?: string; position?: string; detail?: string; hint?: string };
  const line = known.position ? `:${file.text.slice(0, Number(known.position)).split('\n').length}` : '';
  const parts = [known.message ?? String(error), known.detail, known.hint].filter(Boolean);
  return new MigrateError(`sql/${file.path}${line}: ${parts.join('; ').replaceAll('\n', ' ')}`, { cause: error });
}

export function sqlState(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
