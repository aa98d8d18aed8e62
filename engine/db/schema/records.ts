import type { Client } from 'pg';
import type { SqlFile } from './files.ts';

/** A file as it was applied, and the functions that it made. */
export type Record = Readonly<{ file: SqlFile; functions?: readonly string[] }>;

export type Recorded = Readonly<{
  /** Whether exactly these files were applied, with the text that they have now. */
  same: (files: readonly SqlFile[]) => boolean;
  functions: readonly string[];
}>;

/** By what the path of a file begins with. */
const OF_FOLDERS = `split_part(path, '/', 1) = any ($1)`;

/** What was applied last of files that are applied whenever their text changes. */
export async function recordedFiles(client: Client, folders: readonly string[]): Promise<Recorded> {
  const { rows } = await client.query<{ path: string; sha256: string; functions: string[] }>(
    `select path, sha256, functions from app.schema_files where ${OF_FOLDERS}`,
    [folders],
  );
  const hashes = new Map(rows.map((row) => [row.path, row.sha256]));
  return {
    same: (files) => rows.length === files.length && files.every((file) => hashes.get(file.path) === file.sha256),
    functions: rows.flatMap((row) => row.functions),
  };
}

/** Takes the place of what was recorded of these folders. */
export async function recordFiles(
  client: Client,
  folders: readonly string[],
  records: readonly Record[],
): Promise<void> {
  await client.query(`delete from app.schema_files where ${OF_FOLDERS}`, [folders]);
  await client.query(
    `insert into app.schema_files (path, sha256, functions)
     select r ->> 'path', r ->> 'sha256', array(select jsonb_array_elements_text(r -> 'functions'))
     from jsonb_array_elements($1::jsonb) r`,
    [JSON.stringify(records.map(({ file, functions = [] }) => ({ path: file.path, sha256: file.sha256, functions })))],
  );
}
