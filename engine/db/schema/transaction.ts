import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import { explain, type SqlFile, sqlState } from './files.ts';

const MAX_TRIES = 8;

/**
 * Roles belong to the cluster: databases of one cluster that migrate at the same time may touch the same role row.
 * The transaction is undone then, so it can simply run again.
 */
function isClusterRace(error: unknown): boolean {
  const state = sqlState(error);
  if (state === '40001' || state === '40P01') return true;
  return state === 'XX000' && /tuple concurrently (updated|deleted)/.test(String(error));
}

/** Applies a file and what `record` notes of it in one transaction. @throws MigrateError what Postgres says about the file. */
export async function applyOnce(client: Client, file: SqlFile, record: () => Promise<unknown>): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await client.query('begin');
      await client.query(file.text);
      await record();
      await client.query('commit');
      return;
    } catch (error) {
      await client.query('rollback');
      if (tries === MAX_TRIES || !isClusterRace(error)) throw explain(file, error);
      await sleep(20 + Math.random() * 80 * tries);
    }
  }
}
