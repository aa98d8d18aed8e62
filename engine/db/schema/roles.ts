import type { Client } from 'pg';
import type { SqlFile } from './files.ts';
import { recordedFiles, recordFiles } from './records.ts';
import { applyOnce } from './transaction.ts';

/** Makes the roles that all else names, whenever the text of their file has changed: it finds those that are there. */
export async function applyRoles(client: Client, file: SqlFile): Promise<void> {
  if ((await recordedFiles(client, [file.path])).same([file])) return;
  await applyOnce(client, file, () => recordFiles(client, [file.path], [{ file }]));
}
