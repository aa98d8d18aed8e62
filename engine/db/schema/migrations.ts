import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import { explain, MigrateError, type SqlFile, sqlState } from './files.ts';

const NAME = /^migrations\/(\d{6})_([a-z0-9_]+)\.sql$/;
const TRANSACTION_CONTROL = /^[ \t]*(begin|start\s+transaction|commit|rollback|end)\b[^;:\n]*;/im;
const MAX_TRIES = 8;

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

/**
 * Roles belong to the cluster: databases of one cluster that migrate at the same time may touch the same role row.
 * The transaction is undone then, so it can simply run again.
 */
function isClusterRace(error: unknown): boolean {
  const state = sqlState(error);
  if (state === '40001' || state === '40P01') return true;
  return state === 'XX000' && /tuple concurrently (updated|deleted)/.test(String(error));
}

async function apply(client: Client, migration: Migration): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await client.query('begin');
      await client.query(migration.file.text);
      await client.query('insert into app.schema_migrations (version, name, sha256) values ($1, $2, $3)', [
        migration.version,
        migration.name,
        migration.file.sha256,
      ]);
      await client.query('commit');
      return;
    } catch (error) {
      await client.query('rollback');
      if (tries === MAX_TRIES || !isClusterRace(error)) throw explain(migration.file, error);
      await sleep(20 + Math.random() * 80 * tries);
    }
  }
}

/** Applies what is missing, each file with its row in one transaction. The caller holds the migration lock. */
export async function applyMigrations(
  client: Client,
  files: readonly SqlFile[],
  log: (line: string) => void,
): Promise<readonly string[]> {
  const migrations = numbered(files);
  const { rows: applied } = await client.query<{ version: number; name: string; sha256: string }>(
    'select version, name, sha256 from app.schema_migrations order by version',
  );
  for (const row of applied) {
    const migration = migrations.find((candidate) => candidate.version === row.version);
    if (!migration) {
      throw new MigrateError(
        `the database has migration ${row.name}, which this version does not know: it was migrated by a newer version, start that one`,
      );
    }
    if (migration.file.sha256 !== row.sha256) {
      throw new MigrateError(
        `sql/${migration.file.path} was changed after it was applied: undo that, and put the change into a new migration`,
      );
    }
  }
  const last = applied.at(-1);
  const missing = migrations.filter((migration) => !applied.some((row) => row.version === migration.version));
  for (const migration of missing) {
    if (last && migration.version < last.version) {
      throw new MigrateError(
        `sql/${migration.file.path} is older than ${last.name}, which is applied already: give it a higher number`,
      );
    }
    await apply(client, migration);
    log(`migrated ${migration.name}`);
  }
  return missing.map((migration) => migration.name);
}
