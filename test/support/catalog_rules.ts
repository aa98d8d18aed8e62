import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Sql } from './transitions.ts';

export const SQL_FOLDER = path.resolve(import.meta.dirname, '..', '..', 'sql');

/** From-clauses over what the schema holds. */
export const TABLES = `pg_class c where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p')`;
export const FUNCTIONS = `pg_proc p where p.pronamespace = 'app'::regnamespace`;

/** Returns the rows that break a rule; the query says what breaks it. */
export function rulesOf(sql: Sql) {
  return async function breaking(query: string, values: unknown[] = []): Promise<unknown[]> {
    return (await sql.owner.query(query, values)).rows;
  };
}

/** Domain → its values, in the order of its check. */
export async function valuesOfDomains(sql: Sql): Promise<Readonly<Record<string, readonly string[]>>> {
  const { rows } = await sql.owner.query<{ name: string; definition: string }>(
    `select t.typname as name, pg_get_constraintdef(k.oid) as definition
     from pg_constraint k join pg_type t on t.oid = k.contypid where t.typnamespace = 'app'::regnamespace`,
  );
  return Object.fromEntries(
    rows.map(({ name, definition }) => [
      name,
      [...definition.matchAll(/'(\w+)'::text/g)].map(([, value = '']) => value),
    ]),
  );
}

/** The text of a file below the SQL folder. */
export function withoutComments(file: string): string {
  return readFileSync(path.join(SQL_FOLDER, file), 'utf8').replaceAll(/--.*$/gm, '');
}
