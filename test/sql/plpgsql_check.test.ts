import t from 'tap';
import { openSql } from '../support/transitions.ts';

const sql = await openSql(t);

/** Set for what setting them does: the tenant, and the commit that nobody waits for. */
const FOR_THEIR_EFFECT = /never read variable "v_(?:tenant|asynchronous)"/;
/** A literal assigned to jsonb or an array, and a query that is put together at run time: neither is a mistake. */
const NOT_MEANT = /^(?:target type is different type than source type|cannot determinate a result of dynamic SQL)$/;

/** Every function in PL/pgSQL, those of triggers with each of their tables, and a row for each thing found in it. */
const CHECK = `
  select p.oid::regprocedure::text as name, k.level, k.lineno as line, k.message
  from pg_proc p
  join pg_language l on l.oid = p.prolang and l.lanname = 'plpgsql'
  left join lateral (select distinct g.tgrelid from pg_trigger g where g.tgfoid = p.oid) g on true
  left join lateral plpgsql_check_function_tb(p.oid, coalesce(g.tgrelid, 0), fatal_errors => false,
    other_warnings => true, extra_warnings => true, performance_warnings => false) k on true
  where p.pronamespace = 'app'::regnamespace and (g.tgrelid is not null or p.prorettype <> 'trigger'::regtype)
  order by 1, 3`;

type Row = Readonly<{ name: string; level: string | null; line: number | null; message: string | null }>;

const { rows } = await sql.owner.query(`select from pg_available_extensions where name = 'plpgsql_check'`);
const skip = rows.length === 0 && 'the machine has no plpgsql_check (Debian: postgresql-15-plpgsql-check)';

async function check(): Promise<Readonly<{ functions: number; found: readonly Row[] }>> {
  const checked = await sql.owner.query<Row>(CHECK);
  const found = checked.rows.filter(
    ({ message }) => message !== null && !FOR_THEIR_EFFECT.test(message) && !NOT_MEANT.test(message),
  );
  return { functions: new Set(checked.rows.map((row) => row.name)).size, found };
}

t.test('plpgsql_check finds nothing in any function', { skip }, async (test) => {
  await sql.owner.query('create extension plpgsql_check');
  const { functions, found } = await check();
  test.same(found, []);
  test.ok(functions > 130, `${functions} functions`);
});

t.test('it would find a column that is not there, and a variable that nobody reads', { skip }, async (test) => {
  await sql.owner.query(`create function app.broken() returns void language plpgsql as $$
    declare v_unread integer;
    begin
      v_unread := 1;
      update app.tasks set no_column = 1;
    end $$`);
  const { found } = await check();
  test.match(found, [
    { name: 'app.broken()', message: /"v_unread"/ },
    { name: 'app.broken()', level: 'error', message: /no_column/ },
  ]);
  test.equal(found.length, 2);
});
