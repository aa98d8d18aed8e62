import type { Client } from 'pg';
import { MigrateError, type SqlFile } from './files.ts';
import { applyOnce } from './transaction.ts';

const NAME = /^migrations\/(\d{6})_([a-z0-9_]+)\.sql$/;
const TRANSACTION_CONTROL = /^[ \t]*(begin|start\s+transaction|commit|rollback|end)\b[^;:\n]*;/im;

type Migration = Readonly<{ version: number; name: string; file: SqlFile }>;

/** @throws MigrateError for a wrong name, a number used twice or a file that handles transactions itself. */
function numbered(files: readonly SqlFile[]): readonly Migration[] {
  const migrations = files.map((file) => {
    const match = NAME.exec(file.path);
    if (!match) throw new MigrateError(`sql/${file.path}: the name must be NNNNNN_name.sql`);
    return { version: Number(match[1]), name: `${match[1]}_${match[2]}`, file };
  });
  for (const [index, migration] of migrations.entries()) {
    const before = migrations[index - 1];
    if (before?.version === migration.version) {
      throw new MigrateError(`sql/${migration.file.path}: its number is that of ${before.name}`);
    }
    // Dollar-quoted bodies hold "end;" and "begin" of their own.
    const outside = migration.file.text.replace(/(\$\w*\$)[\s\S]*?\1/g, '').replace(/--.*$/gm, '');
    if (TRANSACTION_CONTROL.test(outside)) {
      throw new MigrateError(
        `sql/${migration.file.path}: begin, commit and rollback are the runner's, a file is one transaction`,
      );
    }
  }
  return migrations;
}

type Applied = Readonly<{ version: number; name: string; sha256: string }>;

async function appliedMigrations(client: Client): Promise<readonly Applied[]> {
  const { rows } = await client.query<{ exists: boolean }>(
    `select to_regclass('app.schema_migrations') is not null as exists`,
  );
  if (!rows[0]?.exists) return [];
  const applied = await client.query<Applied>(
    'select version, name, sha256 from app.schema_migrations order by version',
  );
  return applied.rows;
}

/**
 * Whether the database can be brought to these files, asked before anything of it is touched.
 * @throws MigrateError for one that was made before 0.1 or by a newer version, and for files that were changed afterwards.
 */
export async function checkMigrations(client: Client, files: readonly SqlFile[]): Promise<void> {
  const migrations = numbered(files);
  const applied = await appliedMigrations(client);
  const oldest = applied[0];
  if (oldest && migrations[0] && oldest.version < migrations[0].version) {
    throw new MigrateError(
      `the database was made before 0.1 (its first migration is ${oldest.name}), which is not carried over: begin anew with an empty one (npm start: remove the data folder)`,
    );
  }
  for (const row of applied) {
    const migration = migrations.find((candidate) => candidate.version === row.version);
    if (!migration) {
      throw new MigrateError(
        `the database has migration ${row.name}, which this version does not know: it was migrated by a newer version, start that one`,
      );
    }
    if (migration.file.sha256 !== row.sha256) {
      throw new MigrateError(
        `sql/${migration.file.path} was changed after it was applied: undo that, and put the change into a new migration. Before 0.1.0 is released the database is made anew instead (npm run reset)`,
      );
    }
  }
  const last = applied.at(-1);
  const late = migrations.find(
    ({ version }) => last && version < last.version && !applied.some((row) => row.version === version),
  );
  if (last && late) {
    throw new MigrateError(
      `sql/${late.file.path} is older than ${last.name}, which is applied already: give it a higher number`,
    );
  }
}

/** Applies what is missing, each file with its row in one transaction. The caller holds the migration lock, and has checked. */
export async function applyMigrations(
  client: Client,
  files: readonly SqlFile[],
  log: (line: string) => void,
): Promise<readonly string[]> {
  const applied = new Set((await appliedMigrations(client)).map((row) => row.version));
  const missing = numbered(files).filter(({ version }) => !applied.has(version));
  for (const { version, name, file } of missing) {
    const record = 'insert into app.schema_migrations (version, name, sha256) values ($1, $2, $3)';
    await applyOnce(client, file, () => client.query(record, [version, name, file.sha256]));
    log(`migrated ${name}`);
  }
  return missing.map(({ name }) => name);
}
