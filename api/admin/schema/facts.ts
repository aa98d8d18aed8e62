import type { Pool } from 'pg';

/** What the schema is made from besides what PostGraphile looks up: the values of states, and which keys are real. */
export type DatabaseFacts = Readonly<{
  /** `table.column` → its values, in the order of the check. */
  states: ReadonlyMap<string, readonly string[]>;
  /** `table(columns)` of each foreign key. */
  foreignKeys: ReadonlySet<string>;
}>;

/** A check that says which values a column has, and nothing else. */
const ONE_OF = /^CHECK \(\((\w+) = ANY \(ARRAY\[(.+)\]\)\)\)$/;
/** The same among the rules of a table, in the function that its one check calls. */
const ONE_OF_RULE = /\bwhen not r\.(\w+) in \(('\w+'(?:, '\w+')*)\)/g;

const valuesIn = (list: string) => [...list.matchAll(/'(\w+)'/g)].map((match) => match[1] ?? '');

export function keyOf(table: string, columns: readonly string[]): string {
  return `${table}(${columns.join(',')})`;
}

/** The columns of text whose check lists their values are enums of the schema: the check is the one place that names them. */
export async function readFacts(pool: Pool): Promise<DatabaseFacts> {
  const checks = await pool.query<{ table: string; definition: string; rules: string | null }>(
    `select c.relname::text as table, pg_get_constraintdef(k.oid) as definition, p.prosrc as rules
     from pg_constraint k join pg_class c on c.oid = k.conrelid
     left join pg_depend d on d.classid = 'pg_constraint'::regclass and d.objid = k.oid and d.refclassid = 'pg_proc'::regclass
     left join pg_proc p on p.oid = d.refobjid and p.pronamespace = k.connamespace
     where k.connamespace = 'app'::regnamespace and k.contype = 'c'`,
  );
  const states = new Map<string, readonly string[]>();
  for (const { table, definition, rules } of checks.rows) {
    const [, column, list = ''] = ONE_OF.exec(definition) ?? [];
    if (column !== undefined) states.set(`${table}.${column}`, valuesIn(list));
    for (const [, ruled, values = ''] of rules?.matchAll(ONE_OF_RULE) ?? [])
      states.set(`${table}.${ruled}`, valuesIn(values));
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
