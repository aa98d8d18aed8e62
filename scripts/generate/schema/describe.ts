import type { ClientBase } from 'pg';
import { describeDomains, describeFunctions } from './functions.ts';
import { describeTables } from './tables.ts';

const HEAD = `-- Generated from the catalog by \`npm run generate\`: to be read, not to be run, and never edited.
-- What migrations, triggers and functions make in the schema app of a new database: each table on a page, with what every
-- column means beside it; then the domains; then every function with its owner and who else executes it. Functions whose
-- search path is not mentioned have pg_catalog, pg_temp.`;

/** The schema app of a migrated database as text, the same from every Postgres that is supported. */
export async function describeSchema(client: ClientBase): Promise<string> {
  await client.query('begin read only; set local search_path = pg_catalog');
  try {
    const tables = await describeTables(client);
    const domains = await describeDomains(client);
    const functions = await describeFunctions(client);
    return `${[HEAD, ...tables, domains, functions].join('\n\n')}\n`;
  } finally {
    await client.query('rollback');
  }
}
