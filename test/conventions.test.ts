import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { openSql } from './support/transitions.ts';

const sql = await openSql(t);
const SQL_FOLDER = path.resolve(import.meta.dirname, '..', 'sql');

const LOGINS = ['runner_api', 'runner_jobs', 'runner_admin'];
const RUNTIME_ROLES = [...LOGINS, 'runner_owner', 'runner_scoped', 'runner_global', 'runner_report', 'runner_analyst'];
/** Kept by the migration itself, before there are roles. */
const OF_THE_MIGRATION = ['schema_migrations', 'schema_functions', 'schema_views'];
/** Not a tenant's. */
const SHARED_TABLES = ['agent_catalogs', 'analysts', 'pull_gate', ...OF_THE_MIGRATION];

/** The rows that break a rule; the query says what breaks it. */
async function breaking(query: string, values: unknown[] = []): Promise<unknown[]> {
  return (await sql.owner.query(query, values)).rows;
}

const TABLES = `pg_class c where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p')`;

t.test('row security is enabled and forced on every table of a tenant', async (test) => {
  const tables = await sql.owner.query(`select c.relname as name from ${TABLES}`);
  test.ok(tables.rows.length > 15);
  const broken = await breaking(
    `select c.relname from ${TABLES} and not c.relname = any ($1) and not (c.relrowsecurity and c.relforcerowsecurity)`,
    [SHARED_TABLES],
  );
  test.same(broken, []);
  const shared = await breaking(
    `select c.relname from ${TABLES} and c.relname = any ($1) and exists (
       select 1 from pg_attribute a where a.attrelid = c.oid and a.attname = 'organization_id')`,
    [SHARED_TABLES],
  );
  test.same(shared, [], 'and no table of a tenant is taken for a shared one');
});

t.test('primary keys and unique constraints begin with the organization', async (test) => {
  const broken = await breaking(
    `select k.conname, a.attname from pg_constraint k
     join pg_class c on c.oid = k.conrelid
     join pg_attribute a on a.attrelid = c.oid and a.attnum = k.conkey[1]
     where k.connamespace = 'app'::regnamespace and k.contype in ('p', 'u') and not c.relname = any ($1)
       and a.attname <> case c.relname when 'organizations' then 'id' else 'organization_id' end`,
    [SHARED_TABLES],
  );
  test.same(broken, []);
  const without = await breaking(
    `select c.relname from ${TABLES} and not exists (select 1 from pg_constraint k where k.conrelid = c.oid and k.contype = 'p')`,
  );
  test.same(without, [], 'and every table has a primary key');
});

t.test('unique indexes begin with the organization, so that no tenant learns of another', async (test) => {
  const broken = await breaking(
    `select i.indexrelid::regclass::text as name from pg_index i
     join pg_class c on c.oid = i.indrelid and c.relnamespace = 'app'::regnamespace
     join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
     where i.indisunique and not c.relname = any ($1)
       and a.attname <> case c.relname when 'organizations' then 'id' else 'organization_id' end`,
    [SHARED_TABLES],
  );
  test.same(broken, [{ name: 'app.organizations_slug_idx' }], 'save for the slug, which is one for all');
});

t.test('every foreign key includes the organization and has an index that leads with its columns', async (test) => {
  const broken = await breaking(
    `select k.conname from pg_constraint k
     where k.connamespace = 'app'::regnamespace and k.contype = 'f' and (
       not exists (
         select 1 from pg_attribute a where a.attrelid = k.conrelid and a.attnum = any (k.conkey) and a.attname = 'organization_id')
       or not exists (
         select 1 from pg_index i where i.indrelid = k.conrelid and i.indisvalid
           and (select array_agg(n order by n) from unnest((i.indkey::int2[])[0:cardinality(k.conkey) - 1]) n)
             = (select array_agg(n order by n) from unnest(k.conkey) n)
           -- A partial one serves when it leaves out only rows that name nothing.
           and (i.indpred is null or pg_get_expr(i.indpred, i.indrelid) ~ '^\\(\\w+ IS NOT NULL\\)$')))`,
  );
  test.same(broken, []);
});

t.test('every foreign key says what a deletion does', async (test) => {
  const migrations = globSync('migrations/*.sql', { cwd: SQL_FOLDER }).map((file) => withoutComments(file));
  const references = migrations.flatMap((text) => [
    ...text.matchAll(/\breferences\s+app\.\w+\s*\([^)]*\)\s*([^,;]*)/g),
  ]);
  test.ok(references.length > 15);
  for (const [reference, rest = ''] of references)
    test.match(rest, /^on delete (cascade|no action|restrict|set null)/, reference);
});

t.test('every table and column says what it is', async (test) => {
  const relations = `pg_class c where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')`;
  const silent = await breaking(
    `select c.relname as table, a.attname as column from pg_attribute a join (select * from ${relations}) c on c.oid = a.attrelid
     where a.attnum > 0 and not a.attisdropped and coalesce(col_description(c.oid, a.attnum), '') = ''
     union all
     select c.relname, null from ${relations} and coalesce(obj_description(c.oid, 'pg_class'), '') = ''`,
  );
  test.same(silent, []);
});

t.test('constraints, indexes and policies are named by the convention', async (test) => {
  const constraints = await breaking(
    `select c.relname as table, k.conname, k.contype, array_agg(a.attname::text order by u.place)
         filter (where a.attname <> 'organization_id') as columns
     from pg_constraint k join pg_class c on c.oid = k.conrelid
     left join unnest(k.conkey) with ordinality u(attnum, place) on true
     left join pg_attribute a on a.attrelid = c.oid and a.attnum = u.attnum
     where k.connamespace = 'app'::regnamespace and k.contype <> 'n' and not c.relname = any ($1)
     group by 1, 2, 3`,
    [OF_THE_MIGRATION],
  );
  const suffixes: Record<string, string> = { p: 'pkey', u: 'key', f: 'fkey', c: 'check', t: 'trigger', x: 'excl' };
  for (const { table, conname, contype, columns } of constraints as {
    table: string;
    conname: string;
    contype: string;
    columns: string[] | null;
  }[]) {
    if (contype === 't') continue;
    test.match(conname, new RegExp(`^${table}_([a-z0-9_]+_)?${suffixes[contype]}$`), conname);
    // What names columns names them all, and what names a fact is a check or a key of its own.
    if (contype === 'f') test.equal(conname, `${table}_${(columns ?? ['organization_id']).join('_')}_fkey`);
    if (contype === 'p') test.equal(conname, `${table}_pkey`);
  }
  test.same(
    await breaking(
      `select i.indexrelid::regclass::text as name from pg_index i join pg_class c on c.oid = i.indrelid
       join pg_class x on x.oid = i.indexrelid
       where c.relnamespace = 'app'::regnamespace and not c.relname = any ($1)
         and not exists (select 1 from pg_constraint k where k.conindid = i.indexrelid and k.contype in ('p', 'u'))
         and x.relname !~ ('^' || c.relname || '_[a-z0-9_]+_idx$')`,
      [OF_THE_MIGRATION],
    ),
    [],
  );
  test.same(
    await breaking(
      `select c.relname, p.polname from pg_policy p join pg_class c on c.oid = p.polrelid
       where c.relnamespace = 'app'::regnamespace and p.polname !~ '^(owner|scoped|global|tenant|admin|report)_(all|read|insert|update|delete)$'`,
    ),
    [],
  );
});

t.test('tables are plural, names are snake_case, types are few', async (test) => {
  const columns = await sql.owner.query<{ table: string; column: string; type: string }>(
    `select c.relname as table, a.attname as column, format_type(a.atttypid, null) as type
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p') and not c.relname = any ($1)`,
    [OF_THE_MIGRATION],
  );
  const types = ['uuid', 'text', 'integer', 'bigint', 'boolean', 'jsonb', 'bytea', 'timestamp with time zone'];
  for (const { table, column, type } of columns.rows) {
    test.match(table, ['dispatch', 'pull_gate'].includes(table) ? /^[a-z_]+$/ : /^[a-z]+(_[a-z]+)*s$/);
    test.match(column, /^[a-z]+[0-9]*(_[a-z0-9]+)*$/, `${table}.${column}`);
    test.ok(types.includes(type), `${table}.${column} is a ${type}`);
  }
});

/** What lists sort and filter by: columns after the organization. */
const LISTS: Readonly<Record<string, readonly string[]>> = {
  tasks: [
    'created_at, id',
    'updated_at, id',
    'priority, id',
    'due_order, id',
    'identifier_number, id',
    'status, created_at, id',
    'owner_agent_profile_id, created_at, id',
    'root_task_id, created_at, id',
    'parent_id, created_at, id',
    'source_chat_id, created_at, id',
  ],
  runs: ['created_at, id', 'task_id, created_at, id', 'agent_profile_id, created_at, id', 'status, created_at, id'],
  run_logs: ['run_id, sequence'],
  run_inputs: ['run_id, path'],
  task_dependencies: ['task_id, created_at, id'],
  agent_profiles: ['created_at, id'],
  human_inbox_items: ['status, created_at, id'],
  schedules: ['created_at, id'],
  chats: ['last_message_at, id', 'status, last_message_at, id'],
  messages: ['chat_id, created_at, id'],
  context_sources: ['created_at, id'],
  context_documents: ['scope, revision, path'],
  audit_entries: ['created_at, id', 'action, created_at, id', 'actor_kind, created_at, id'],
};

t.test('every list has the index that its sort needs', async (test) => {
  const { rows } = await sql.owner.query<{ table: string; columns: string }>(
    `select c.relname as table, string_agg(a.attname, ', ' order by u.place) as columns
     from pg_index i join pg_class c on c.oid = i.indrelid and c.relnamespace = 'app'::regnamespace
     cross join unnest(i.indkey::int2[]) with ordinality u(attnum, place)
     join pg_attribute a on a.attrelid = c.oid and a.attnum = u.attnum
     group by c.relname, i.indexrelid`,
  );
  const indexed = (table: string) => rows.filter((row) => row.table === table).map((row) => row.columns);
  for (const [table, sorts] of Object.entries(LISTS)) {
    for (const sort of sorts) test.ok(indexed(table).includes(`organization_id, ${sort}`), `${table} by ${sort}`);
  }
  test.ok(indexed('organizations').includes('created_at, id'));
});

const FUNCTIONS = `pg_proc p where p.pronamespace = 'app'::regnamespace`;

t.test('every function has its search path, save for those that take less time than setting it', async (test) => {
  const broken = await breaking(
    `select p.proname from ${FUNCTIONS} and not coalesce(p.proconfig, '{}') @> array['search_path=pg_catalog, pg_temp'] order by 1`,
  );
  test.same(broken, [{ proname: 'current_organization' }, { proname: 'report_shows' }, { proname: 'uuid_v7' }]);
});

t.test('functions belong to the roles that limit them', async (test) => {
  const { rows } = await sql.owner.query<{ name: string; owner: string; definer: boolean }>(
    `select p.proname as name, p.proowner::regrole::text as owner, p.prosecdef as definer from ${FUNCTIONS} order by 1`,
  );
  test.same(
    rows.filter((row) => row.owner === 'runner_global').map((row) => row.name),
    [
      'admin_catalog_publish',
      'agent_catalog_publish',
      'agent_catalog_publish_if_none',
      'analyst_grant',
      'analyst_revoke',
      'analysts_list',
      'chats_expired',
      'chats_search',
      'context_health_due',
      'dispatch_due',
      'dispatch_totals',
      'idempotency_keys_clean',
      'organization_slug_free',
      'organizations_deleted',
      'organizations_list',
      'run_requests_pull',
    ],
    'those that see every tenant are these',
  );
  test.same(
    rows.filter((row) => row.owner === 'runner_owner').map((row) => row.name),
    [
      'agent_catalogs_keep',
      'audit_entries_keep',
      'context_rows_keep',
      'context_sources_keep',
      'current_organization',
      'human_inbox_items_mark_run',
      'messages_keep_revision',
      'report_shows',
      'search_fold',
      'search_grams',
      'tasks_raise_version',
      'tasks_watch_spend',
      'uuid_v7',
    ],
    'the owner of the tables owns no function that runs with its rights',
  );
  test.same(
    rows.filter((row) => row.definer && row.owner === 'runner_owner'),
    [],
  );
  test.same(
    rows
      .filter((row) => !['runner_scoped', 'runner_global', 'runner_owner'].includes(row.owner))
      .map((row) => row.name),
    ['enqueue', 'timezone_or_utc'],
    'and the migrating login owns the way into the job queue alone, runner_report what its views call',
  );
});

t.test('a tenant’s transition sets its tenant before anything else', async (test) => {
  const { rows } = await sql.owner.query<{ name: string; body: string; arguments: string }>(
    `select p.proname as name, p.prosrc as body, pg_get_function_arguments(p.oid) as arguments
     from ${FUNCTIONS} and p.prosecdef and p.proowner = 'runner_scoped'::regrole and p.prorettype <> 'trigger'::regtype`,
  );
  test.ok(rows.length > 25);
  for (const { name, body, arguments: list } of rows) {
    test.match(list, /^p_organization_id uuid/, name);
    test.match(
      body,
      /^\s*declare\s+v_tenant constant text := set_config\('app\.organization_id', p_organization_id::text, true\);/,
      name,
    );
  }
});

t.test('parameters are named p_…, save for rows', async (test) => {
  const broken = await breaking(
    `select p.proname, n.name from pg_proc p
     cross join lateral unnest(p.proargnames, p.proargmodes, coalesce(p.proallargtypes, p.proargtypes::oid[]))
       n(name, mode, type)
     join pg_type y on y.oid = n.type
     where p.pronamespace = 'app'::regnamespace and coalesce(n.mode, 'i') in ('i', 'b') and y.typtype <> 'c'
       and n.name !~ '^p_'`,
  );
  test.same(broken, []);
});

t.test('nobody has rights that nobody gave', async (test) => {
  test.same(
    await breaking(
      `select p.proname from ${FUNCTIONS} and exists (
         select 1 from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0)`,
    ),
    [{ proname: 'current_organization' }],
    'public executes what policies call, and nothing else',
  );
  test.same(
    await breaking(
      `select c.relname from pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
       where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'S') and a.grantee = 0`,
    ),
    [],
  );
  test.same(
    await breaking(
      `select a.privilege_type from pg_namespace n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
       where n.nspname = 'app' and a.grantee = 0`,
    ),
    [],
  );
  test.same(
    await breaking(
      `select role, c.relname, verb from unnest($1::text[]) role, unnest(array['insert', 'update', 'delete', 'truncate', 'references', 'trigger']) verb,
         ${TABLES} and has_table_privilege(role, c.oid, verb)`,
      [[...LOGINS, 'runner_report']],
    ),
    [],
    'logins write no table',
  );
  test.same(
    await breaking(
      `select role, c.relname, a.attname from unnest($1::text[]) role, pg_class c
       join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p')
         and has_column_privilege(role, c.oid, a.attnum, 'insert, update, references')`,
      [[...LOGINS, 'runner_report']],
    ),
    [],
    'nor a column of one',
  );
  test.same(
    await breaking(
      `select role from unnest($1::text[]) role where has_schema_privilege(role, 'app', 'create') and role <> 'runner_owner'`,
      [RUNTIME_ROLES],
    ),
    [],
  );
  test.same(
    await breaking(
      `select p.proname from ${FUNCTIONS} and not p.prosecdef and exists (
         select 1 from unnest($1::text[]) role where has_function_privilege(role, p.oid, 'execute')) order by 1`,
      [LOGINS],
    ),
    [{ proname: 'current_organization' }, { proname: 'task_find' }, { proname: 'uuid_v7' }],
    'what logins call runs with the rights of its owner, save for what reads as they do',
  );
});

t.test('tables belong to their owner role, and every policy names its roles', async (test) => {
  test.same(
    await breaking(
      `select c.relname from ${TABLES} and c.relowner <> 'runner_owner'::regrole and not c.relname = any ($1)`,
      [OF_THE_MIGRATION],
    ),
    [],
  );
  test.same(
    await breaking(
      `select c.relname, p.polname from pg_policy p join pg_class c on c.oid = p.polrelid
       where c.relnamespace = 'app'::regnamespace and (0 = any (p.polroles) or not p.polpermissive)`,
    ),
    [],
  );
});

t.test('no runtime role has the rights of another without becoming it', async (test) => {
  test.same(
    await breaking(
      `select a, b from unnest($1::text[]) a, unnest($1::text[]) b where a <> b and pg_has_role(a, b, 'usage')`,
      [RUNTIME_ROLES],
    ),
    [],
  );
  test.same(
    await breaking(
      `select rolname from pg_roles where rolname = any ($1)
         and (rolsuper or rolbypassrls or rolcreaterole or rolcreatedb or rolreplication or rolinherit
              or rolcanlogin <> (rolname = any ($2)))`,
      [RUNTIME_ROLES, LOGINS],
    ),
    [],
  );
});

function withoutComments(file: string): string {
  return readFileSync(path.join(SQL_FOLDER, file), 'utf8').replaceAll(/--.*$/gm, '');
}

const functionFiles = globSync('functions/**/*.sql', { cwd: SQL_FOLDER });

t.test('a function file holds the one function that it is named after', async (test) => {
  test.ok(functionFiles.length > 50);
  for (const file of functionFiles) {
    const created = [...withoutComments(file).matchAll(/create or replace function app\.(\w+)/g)].map(
      (match) => match[1],
    );
    test.same(created, [path.basename(file, '.sql')], file);
  }
});

t.test('every transition says at its head which codes it raises', async (test) => {
  for (const file of functionFiles) {
    const text = readFileSync(path.join(SQL_FOLDER, file), 'utf8');
    if (!/grant execute/.test(text)) continue;
    const head = text.slice(0, text.indexOf('create or replace function'));
    test.match(head, /^--/, `${file} begins with what it does`);
    for (const [, status, code = ''] of withoutComments(file).matchAll(RAISED)) {
      test.ok(head.includes(code), `${file}: ${status} ${code}`);
    }
  }
});

/** app.fail(409, 'state_conflict', …) and app.problem(…). */
const RAISED = /app\.(?:fail|problem)\(\s*(\d{3}),\s*'(\w+)'/g;
/** app.issue(…, 'stale', …), app.lease_refuse('differs'); and the issues that one query makes of many artifacts. */
const REASONS =
  /app\.(?:issue\((?:case[^;]*?end|'[\w.]+'|format\([^;]*?\)|[pv]_path(?: \|\| '[\w.]+')?),|lease_refuse\()\s*'(\w+)'/g;
const ISSUES_OF_ARTIFACTS = /'code', case when [^']+'(\w+)' else '(\w+)' end/g;
/** The issues that one query makes of the operations of a plan: place, path, code. */
const ISSUES_OF_PLANS =
  /^ +select (?:-1|\w\.place)\b.*?(?:'[\w.]*'|\.place| end)(?: as at)?,\s+'([a-z_]+)'(?: as code)?,/gms;

/** The first two columns of the tables under a heading of sql/README.md, without backticks. */
function documented(heading: string): string[][] {
  const readme = readFileSync(path.join(SQL_FOLDER, 'README.md'), 'utf8');
  const section = readme.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
  return section
    .split('\n')
    .filter((line) => /^\| *(`|\d)/.test(line))
    .map((line) =>
      line
        .split('|')
        .map((cell) => cell.trim().replaceAll('`', ''))
        .slice(1, 3),
    );
}

t.test('every code that a function raises is in the table of the README, and nothing else is', async (test) => {
  const raised = new Set<string>();
  const reasons = new Set<string>();
  for (const file of functionFiles) {
    const text = withoutComments(file);
    for (const [, status, code] of text.matchAll(RAISED)) raised.add(`${status} ${code}`);
    for (const [, reason = ''] of text.matchAll(REASONS)) reasons.add(reason);
    for (const [, one = '', two = ''] of text.matchAll(ISSUES_OF_ARTIFACTS)) reasons.add(one).add(two);
    for (const [, reason = ''] of text.matchAll(ISSUES_OF_PLANS)) reasons.add(reason);
  }
  test.ok(raised.size > 10 && reasons.size > 10);
  test.same(
    documented('Error codes')
      .map((cells) => cells.join(' '))
      .sort(),
    [...raised].sort(),
  );
  test.same(
    documented('Reasons')
      .map(([reason = '']) => reason)
      .sort(),
    [...reasons].sort(),
  );
});
