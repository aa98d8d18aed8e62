import path from 'node:path';
import type { Client } from 'pg';
import { explain, type SqlFile } from './files.ts';
import { recordedFiles, recordFiles } from './records.ts';

/** Who owns the views: its policies decide what they show. */
const OWNER = 'runner_report';
/** Who reads them. */
const READER = 'runner_analyst';

async function existing(client: Client): Promise<readonly string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = to_regnamespace('reporting') and relkind in ('v', 'm') order by relname`,
  );
  return rows.map(({ name }) => name);
}

function nameOf(file: SqlFile): string {
  return path.posix.basename(file.path, '.sql');
}

async function applyAll(client: Client, files: readonly SqlFile[], before: readonly string[]): Promise<void> {
  // With its rights alone: a file cannot do more than its views may read.
  await client.query(`grant create on schema reporting to ${OWNER}; set local role ${OWNER}`);
  // All at once, and anew: replacing a view could neither take columns away nor change their types.
  if (before.length > 0) await client.query(`drop view ${before.map((name) => `reporting."${name}"`).join(', ')}`);
  for (const file of files) {
    try {
      await client.query(file.text);
      await client.query(`grant select on reporting."${nameOf(file)}" to ${READER}`);
    } catch (error) {
      throw explain(file, error);
    }
  }
  await client.query(`reset role; revoke create on schema reporting from ${OWNER}`);
  await recordFiles(
    client,
    ['reporting'],
    files.map((file) => ({ file })),
  );
}

/**
 * Applies all view files, each of which makes the view that it is named after, in one transaction when the text of any
 * changed or a view is not there (a migration had to drop it). The caller holds the migration lock.
 */
export async function applyViews(
  client: Client,
  files: readonly SqlFile[],
  log: (line: string) => void,
): Promise<boolean> {
  const recorded = await recordedFiles(client, ['reporting']);
  const before = await existing(client);
  if (recorded.same(files) && before.join() === files.map(nameOf).sort().join()) return false;
  await client.query('begin');
  try {
    await client.query('set local search_path = pg_catalog, pg_temp');
    await applyAll(client, files, before);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    throw error;
  }
  const names = files.map(nameOf);
  const gone = before.filter((name) => !names.includes(name));
  log(`applied ${files.length} reporting views${gone.length > 0 ? `, dropped ${gone.join(', ')}` : ''}`);
  return true;
}
