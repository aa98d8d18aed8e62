import t from 'tap';
import { askEach, createAnalyst, openReporting } from '../../../support/analysts.ts';
import { multiply } from '../../../support/reporting_fixtures.ts';
import { createTenant } from '../../../support/tenant.ts';

// EXPLAIN ANALYZE counts the rows that each step saw, and tells which steps were never asked. Neither may depend on what other
// tenants' rows hold.
const sql = await openReporting(t);
const own = await createTenant(sql);
const other = await createTenant(sql);
/** What the other tenant has, and the own one has not. */
const TEXT = 'sesame';
const NUMBER = 987_654;
// Texts and amounts: what is not sampled (see the list in grants.test.ts).
const { rows: tables } = await sql.owner.query<{ name: string; values: string }>(
  `select c.relname as name,
     string_agg(format('%I = %s', a.attname, case a.atttypid when 'text'::regtype then $1 else $2 end), ', ') as values
   from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and a.attstattarget = 0
   where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p')
     and has_column_privilege('runner_report', c.oid, a.attnum, 'select')
     and a.atttypid in ('text'::regtype, 'integer'::regtype, 'bigint'::regtype)
   group by c.relname order by c.relname`,
  [`'${TEXT}'`, String(NUMBER)],
);
// Words of closed lists too.
await sql.owner.query(`do $$ declare t text; c text; begin
  for t, c in select conrelid::regclass, conname from pg_constraint where connamespace = 'app'::regnamespace and contype = 'c' and conrelid <> 0 loop
    execute format('alter table %s drop constraint %I', t, c);
  end loop;
end $$`);
for (const { name, values } of tables) {
  // One row, for the keys are unique; the audit log lets nobody change it, its owner included.
  await sql.owner.query(`set session_replication_role = replica;
    update app.${name} set ${values} where ctid = (select ctid from app.${name}
      where ${name === 'organizations' ? 'id' : 'organization_id'} = '${other.organizationId}' limit 1);
    set session_replication_role = origin`);
}
// So many that the planner would like their index of slugs.
await multiply(sql, 'organizations', 500, { id: 'gen_random_uuid()', slug: `'slug-' || n || left(id::text, 8)` }, []);
const analyst = await createAnalyst(t, sql, { organizationIds: [own.organizationId] });
// Nothing but the value may differ between two plans: the tables stay as this leaves them.
await sql.owner.query(`do $$ declare t regclass; begin
  for t in select oid from pg_class where relnamespace = 'app'::regnamespace and relkind = 'r' loop
    execute format('alter table %s set (autovacuum_enabled = off)', t);
  end loop;
end $$`);
await sql.owner.query('vacuum analyze');

/** A hostile reader chooses how a table is read, and what a comparison seems to cost. */
const PLANNERS = [
  '',
  'set enable_indexscan = off; set enable_indexonlyscan = off; set enable_bitmapscan = off;',
  'set enable_seqscan = off; set enable_bitmapscan = off;',
  'set cpu_operator_cost = 0; set enable_indexscan = off; set enable_bitmapscan = off;',
];

const { rows: columns } = await sql.owner.query<{ view: string; column: string; numeric: boolean }>(
  `select c.relname as view, a.attname as column, a.atttypid <> 'text'::regtype as numeric
   from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
   where c.relnamespace = 'reporting'::regnamespace and a.atttypid in ('text'::regtype, 'integer'::regtype, 'bigint'::regtype)
   order by c.relname, a.attnum`,
);
const hidden: typeof columns = [];
for (const one of columns) {
  const { rows } = await sql.owner.query(
    `select from reporting.${one.view} where organization_id = $1 and ${one.column} = $2 limit 1`,
    [other.organizationId, one.numeric ? NUMBER : TEXT],
  );
  if (rows.length > 0) hidden.push(one);
}

const EXPLAIN = 'explain (analyze, costs off, timing off, summary off, buffers off)';

t.test('of no value, whether another tenant has it', async (test) => {
  test.ok(hidden.length >= 35);
  for (const { view, column, numeric } of hidden) {
    const statements = PLANNERS.flatMap((planner) =>
      (numeric ? [NUMBER, NUMBER + 1] : [TEXT, 'bungle']).flatMap((value) =>
        // The second seems to cost half of the first.
        [`${column} = '${value}'`, `${column} = any ('{${value}}')`].map(
          (condition) => `${planner} ${EXPLAIN} select from ${view} where ${condition}`,
        ),
      ),
    );
    const results = await askEach(analyst.url, statements);
    // Without the value that was asked for, and without what the visibility map saved.
    const plans = results.map(
      ({ code, out }) => code ?? out.replaceAll(/sesame|bungle|98765\d|Heap Fetches: \d+/g, '?'),
    );
    for (const [index, statement] of statements.entries()) {
      test.match(plans[index], 'Filter', statement);
      if (index % 4 < 2) test.equal(plans[index], plans[index + 2], statement);
    }
  }
});
