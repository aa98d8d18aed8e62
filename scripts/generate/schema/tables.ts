import type { ClientBase } from 'pg';
import { beside, commented, flat, heading, wrapped } from './text.ts';

type Table = Readonly<{
  name: string;
  comment: string;
  owner: string;
  options: string | null;
  rowSecurity: boolean;
  forced: boolean;
}>;
type Column = Readonly<{
  table: string;
  definition: string;
  comment: string;
  name: string;
  sampled: boolean;
}>;
/** A line of SQL about a table: a constraint, an index, a trigger or a policy. */
type Line = Readonly<{ table: string; text: string }>;
type Grant = Readonly<{ table: string; role: string; verb: string; columns: string[] | null }>;

/** The login that migrates has another name everywhere. */
export const OWNER = (expression: string) =>
  `case when ${expression}::regrole::text like 'runner\\_%' then ${expression}::regrole::text else 'the migrating login' end`;

const TABLES = `
  select c.relname as name, coalesce(obj_description(c.oid, 'pg_class'), '') as comment, ${OWNER('c.relowner')} as owner,
    array_to_string(c.reloptions, ', ') as options, c.relrowsecurity as "rowSecurity", c.relforcerowsecurity as forced
  from pg_class c where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p') order by c.relname collate "C"`;

const COLUMNS = `
  select c.relname as table, a.attname as name, coalesce(col_description(c.oid, a.attnum), '') as comment,
    coalesce(a.attstattarget, -1) <> 0 as sampled,
    concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod),
      case when a.attcollation <> t.typcollation then 'COLLATE ' || a.attcollation::regcollation end,
      case when a.attnotnull then 'NOT NULL' end,
      case when a.attidentity <> '' then 'GENERATED ALWAYS AS IDENTITY'
        when a.attgenerated <> '' then 'GENERATED ALWAYS AS (' || pg_get_expr(d.adbin, d.adrelid) || ') STORED'
        when d.oid is not null then 'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid) end) as definition
  from pg_class c
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  join pg_type t on t.oid = a.atttypid
  left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
  where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p')
  order by a.attnum`;

/** Keys first, then what they refer to, then rules. */
const CONSTRAINTS = `
  select c.relname as table, format('CONSTRAINT %I %s', k.conname, pg_get_constraintdef(k.oid)) as text
  from pg_constraint k join pg_class c on c.oid = k.conrelid
  where k.connamespace = 'app'::regnamespace and k.contype in ('p', 'u', 'f', 'c', 'x')
  order by position(k.contype::text in 'pufxc'), k.conname collate "C"`;

const INDEXES = `
  select c.relname as table, pg_get_indexdef(i.indexrelid) || coalesce((
      select format(' /* not sampled: column %s */', string_agg(a.attnum::text, ', ' order by a.attnum))
      from pg_attribute a where a.attrelid = i.indexrelid and a.attstattarget = 0 having count(*) > 0), '') as text
  from pg_index i join pg_class c on c.oid = i.indrelid join pg_class x on x.oid = i.indexrelid
  where c.relnamespace = 'app'::regnamespace
    and not exists (select from pg_constraint k where k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x'))
  order by x.relname collate "C"`;

const TRIGGERS = `
  select c.relname as table, pg_get_triggerdef(g.oid) as text
  from pg_trigger g join pg_class c on c.oid = g.tgrelid
  where c.relnamespace = 'app'::regnamespace and not g.tgisinternal order by g.tgname collate "C"`;

const POLICIES = `
  select c.relname as table, concat_ws(' ', format('CREATE POLICY %I ON app.%I', p.polname, c.relname),
    case p.polpermissive when false then 'AS RESTRICTIVE' end,
    case p.polcmd when 'r' then 'FOR SELECT' when 'a' then 'FOR INSERT' when 'w' then 'FOR UPDATE' when 'd' then 'FOR DELETE' end,
    'TO ' || (select string_agg(r::regrole::text, ', ' order by r::regrole::text) from unnest(p.polroles) r),
    'USING (' || pg_get_expr(p.polqual, p.polrelid) || ')',
    'WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')') as text
  from pg_policy p join pg_class c on c.oid = p.polrelid
  where c.relnamespace = 'app'::regnamespace order by p.polname collate "C"`;

/** Those of columns name the columns, in the order of the table. */
const GRANTS = `
  select c.relname as table, a.grantee::regrole::text as role, a.privilege_type as verb, null::text[] as columns
  from pg_class c cross join lateral aclexplode(c.relacl) a
  where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p') and a.grantee <> c.relowner
  union all
  select c.relname, a.grantee::regrole::text, a.privilege_type, array_agg(k.attname::text order by k.attnum)
  from pg_class c join pg_attribute k on k.attrelid = c.oid and not k.attisdropped
  cross join lateral aclexplode(k.attacl) a
  where c.relnamespace = 'app'::regnamespace group by 1, 2, 3`;

const VERBS = ['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER', 'MAINTAIN'];

function grantLines(table: string, grants: readonly Grant[]): string[] {
  const whole = Map.groupBy(
    grants.filter((grant) => grant.columns === null),
    (grant) => grant.role,
  );
  const rights = [...whole].map(([role, rows]) => {
    const verbs = rows.map((row) => row.verb).sort((a, b) => VERBS.indexOf(a) - VERBS.indexOf(b));
    return { role, what: verbs.join(', ') };
  });
  for (const { role, verb, columns } of grants)
    if (columns) rights.push({ role, what: `${verb} (${columns.join(', ')})` });
  return [...Map.groupBy(rights, (right) => right.what)]
    .map(([what, rows]) => ({
      what,
      roles: rows
        .map((row) => row.role)
        .sort()
        .join(', '),
    }))
    .sort((a, b) => (a.roles < b.roles ? -1 : 1))
    .map(({ what, roles }) => wrapped(`GRANT ${what} ON app.${table} TO ${roles};`));
}

/** The rules of a row that are one function, as its text has them: each `when not <rule> then '<name>'`. */
const RULES = `
  select c.relname as table, p.prosrc as text from pg_class c
  join pg_proc p on p.proname = c.relname || '_check' and p.pronamespace = c.relnamespace
    and p.pronargs = 1 and p.proargtypes[0] = c.reltype
  where c.relnamespace = 'app'::regnamespace`;

function ruleLines(name: string, bodies: readonly Line[]): string[] {
  const lines = bodies.flatMap(({ text }) => text.split('\n'));
  const rules = lines.slice(lines.findIndex((line) => line.endsWith(':= case')) + 1, lines.indexOf('  end;'));
  return rules.length === 0
    ? []
    : [`-- The rules of app.${name}_check:`, ...rules.map((line) => `-- ${line.slice(4)}`)];
}

/** Every table on a page of its own. */
export async function describeTables(client: ClientBase): Promise<string[]> {
  const ask = async <Row>(text: string) => (await client.query(text)).rows as Row[];
  const columns = Map.groupBy(await ask<Column>(COLUMNS), (row) => row.table);
  const grants = Map.groupBy(await ask<Grant>(GRANTS), (row) => row.table);
  const lines = async (text: string) => Map.groupBy(await ask<Line>(text), (row) => row.table);
  const constraints = await lines(CONSTRAINTS);
  const bodies = await lines(RULES);
  const indexes = await lines(INDEXES);
  const triggers = await lines(TRIGGERS);
  const policies = await lines(POLICIES);
  return (await ask<Table>(TABLES)).map((table) => {
    const own = columns.get(table.name) ?? [];
    const rules = constraints.get(table.name) ?? [];
    const unsampled = own.filter((column) => !column.sampled).map((column) => column.name);
    return [
      heading(table.name),
      commented(table.comment),
      ...(table.owner === 'runner_owner' ? [] : [`-- Belongs to ${table.owner}.`]),
      `CREATE TABLE app.${table.name} (`,
      ...own.map((column, place) => {
        const comma = place + 1 < own.length || rules.length > 0 ? ',' : '';
        return beside(`  ${flat(column.definition)}${comma}`, column.comment);
      }),
      ...rules.map(({ text }, place) => `  ${wrapped(flat(text), '    ')}${place + 1 < rules.length ? ',' : ''}`),
      `)${table.options ? ` WITH (${table.options})` : ''};`,
      ...ruleLines(table.name, bodies.get(table.name) ?? []),
      ...(unsampled.length > 0 ? [commented(`Not sampled (SET STATISTICS 0): ${unsampled.join(', ')}`)] : []),
      ...(indexes.get(table.name) ?? []).map(({ text }) => wrapped(`${flat(text)};`)),
      ...(triggers.get(table.name) ?? []).map(({ text }) => wrapped(`${flat(text)};`)),
      ...(table.rowSecurity ? [`ALTER TABLE app.${table.name} ENABLE ROW LEVEL SECURITY;`] : []),
      ...(table.forced ? [`ALTER TABLE app.${table.name} FORCE ROW LEVEL SECURITY;`] : []),
      ...(policies.get(table.name) ?? []).map(({ text }) => wrapped(`${flat(text)};`)),
      ...grantLines(table.name, grants.get(table.name) ?? []),
    ].join('\n');
  });
}
