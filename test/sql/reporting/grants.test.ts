import { readFile } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import { dictionary } from '../../../scripts/analyst/dictionary.ts';
import { connected, createAnalyst, openReporting } from '../../support/analysts.ts';
import { createPlace } from '../../support/fixtures.ts';

const sql = await openReporting(t);
const { organizationId } = await createPlace(sql);
const analyst = await createAnalyst(t, sql, { organizationIds: [organizationId] });

t.test('what it may do is exactly to read these views', async (test) => {
  const { rows: relations } = await sql.owner.query<{ name: string; privileges: string }>(
    `select c.relname as name, string_agg(p.privilege, ', ' order by p.privilege) as privileges
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     cross join unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger']) p(privilege)
     where n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast') and c.relkind in ('r', 'p', 'v', 'm', 'f')
       and has_table_privilege($1, c.oid, p.privilege)
     group by 1 order by 1`,
    [analyst.name],
  );
  test.same(
    relations,
    [
      'agent_profiles',
      'audit',
      'chats',
      'context_revisions',
      'contract_failures',
      'cost_by_initiative',
      'inbox_items',
      'messages',
      'onboarding',
      'organizations',
      'queue_waits',
      'run_logs',
      'run_requests',
      'runs',
      'schedules',
      'task_dependencies',
      'tasks',
      'throughput_by_day',
      'waiting_for_people',
    ].map((name) => ({ name, privileges: 'select' })),
  );
  const { rows: columns } = await sql.owner.query(
    `select c.relname, a.attname from pg_class c join pg_namespace n on n.oid = c.relnamespace
     join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where n.nspname in ('app', 'graphile_worker') and c.relkind in ('r', 'p', 'v')
       and has_column_privilege($1, c.oid, a.attnum, 'select, insert, update, references')`,
    [analyst.name],
  );
  test.same(columns, []);
  const { rows: schemas } = await sql.owner.query(
    `select nspname as name from pg_namespace where nspname !~ '^pg_(toast|temp)' and has_schema_privilege($1, oid, 'usage') order by 1`,
    [analyst.name],
  );
  test.same(
    schemas.map(({ name }) => name),
    ['information_schema', 'pg_catalog', 'public', 'reporting'],
  );
  const { rows: creates } = await sql.owner.query(
    `select nspname as name from pg_namespace where has_schema_privilege($1, oid, 'create')
     union all select datname from pg_database where datname = current_database() and has_database_privilege($1, oid, 'create, temporary')`,
    [analyst.name],
  );
  test.same(creates, []);
});

t.test('a view is a security barrier of runner_report, and begins with its organization', async (test) => {
  const { rows } = await sql.owner.query(
    `select c.relname as name from pg_class c
     where c.relnamespace = 'reporting'::regnamespace and (c.relkind <> 'v'
       or c.relowner <> 'runner_report'::regrole
       or c.reloptions is distinct from array['security_barrier=true']
       or not exists (select from pg_attribute a where a.attrelid = c.oid and a.attnum = 1 and a.attname = 'organization_id'))`,
  );
  test.same(rows, []);
});

t.test('the owner of the views reads the columns that they show, and no others', async (test) => {
  const { rows } = await sql.owner.query(
    `select c.relname as table, a.attname as column from pg_class c
     join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p')
       and c.relname not in ('analysts', 'analyst_grants')
       and has_column_privilege('runner_report', c.oid, a.attnum, 'select')
       and not exists (
         select from pg_depend d
         left join pg_rewrite w on d.classid = 'pg_rewrite'::regclass and w.oid = d.objid
         left join pg_class v on v.oid = w.ev_class
         where d.refclassid = 'pg_class'::regclass and d.refobjid = c.oid and d.refobjsubid = a.attnum
           and (v.relnamespace = 'reporting'::regnamespace or d.classid = 'pg_policy'::regclass))`,
  );
  test.same(rows, []);
  const { rows: whole } = await sql.owner.query(
    `select c.relname as name from pg_class c where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p')
       and has_table_privilege('runner_report', c.oid, 'select') order by 1`,
  );
  test.same(
    whole.map(({ name }) => name),
    ['analyst_grants', 'analysts'],
    'column by column',
  );
});

t.test('every view and every column says what it is', async (test) => {
  const { rows } = await sql.owner.query(
    `select c.relname as view, a.attname as column from pg_class c
     join pg_attribute a on a.attrelid = c.oid and a.attnum >= 0 and not a.attisdropped
     where c.relnamespace = 'reporting'::regnamespace and c.relkind = 'v' and col_description(c.oid, a.attnum) is null
     union all
     select c.relname, null from pg_class c
     where c.relnamespace = 'reporting'::regnamespace and obj_description(c.oid, 'pg_class') is null`,
  );
  test.same(rows, []);
});

t.test('the data dictionary is that of the views', async (test) => {
  const written = await readFile(path.resolve(import.meta.dirname, '../../../sql/reporting/README.md'), 'utf8');
  const made = await connected(sql.url, dictionary);
  test.equal(written, made, 'made by npm run -s analyst -- dictionary > sql/reporting/README.md');
});
