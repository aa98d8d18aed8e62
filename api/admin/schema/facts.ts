import type { Pool } from 'pg';

/** What the schema is made from besides what PostGraphile looks up: the values of states, and which keys are real. */
export type DatabaseFacts = Readonly<{
  /** `table.column` → its values, in the order of its domain. */
  states: ReadonlyMap<string, readonly string[]>;
  /** `table(columns)` of each foreign key. */
  foreignKeys: ReadonlySet<string>;
}>;

/** The check of a domain over text: which values it has, and nothing else. */
const ONE_OF = /^CHECK \(\(VALUE = ANY \(ARRAY\[(.+)\]\)\)\)$/;

const valuesIn = (list: string) => [...list.matchAll(/'(\w+)'/g)].map((match) => match[1] ?? '');

export function keyOf(table: string, columns: readonly string[]): string {
  return `${table}(${columns.join(',')})`;
}

/** Columns whose domain lists their values are enums of the schema: the domain is the one place that names them. */
export async function readFacts(pool: Pool): Promise<DatabaseFacts> {
  const columns = await pool.query<{ table: string; column: string; definition: string }>(
    `select c.relname::text as table, a.attname::text as column, pg_get_constraintdef(k.oid) as definition
     from pg_constraint k
     join pg_attribute a on a.atttypid = k.contypid and a.attnum > 0
     join pg_class c on c.oid = a.attrelid and c.relkind = 'r'
     where k.connamespace = 'app'::regnamespace and k.contype = 'c'`,
  );
  const states = new Map<string, readonly string[]>();
  for (const { table, column, definition } of columns.rows) {
    const [, list] = ONE_OF.exec(definition) ?? [];
    if (list !== undefined) states.set(`${table}.${column}`, valuesIn(list));
  }
  const keys = await pool.query<{ table: string; columns: string[] }>(
    `select c.relname::text as table,
       (select array_agg(a.attname::text order by u.place) from unnest(k.conkey) with ordinality u(attnum, place)
        join pg_attribute a on a.attrelid = k.conrelid and a.attnum = u.attnum) as columns
     from pg_constraint k join pg_class c on c.oid = k.conrelid
     where k.connamespace = 'app'::regnamespace and k.contype = 'f'`,
  );
  return { states, foreignKeys: new Set(keys.rows.map(({ table, columns }) => keyOf(table, columns))) };
}
