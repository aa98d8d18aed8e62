import t from 'tap';
import { FUNCTIONS, rulesOf, TABLES } from './support/catalog_rules.ts';
import { openSql } from './support/transitions.ts';

const sql = await openSql(t);

const LOGINS = ['runner_api', 'runner_jobs', 'runner_admin'];
const RUNTIME_ROLES = [...LOGINS, 'runner_owner', 'runner_scoped', 'runner_global', 'runner_report', 'runner_analyst'];
/** Kept by the migration itself, before there are roles. */
const OF_THE_MIGRATION = ['schema_migrations', 'schema_files'];
/** Not a tenant's. */
const SHARED_TABLES = [
  'agent_catalogs',
  'analysts',
  'currency_rate_sources',
  'currency_rates',
  'pull_gate',
  'rate_limit_buckets',
  ...OF_THE_MIGRATION,
];

const breaking = rulesOf(sql);

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

t.test(
  'nothing is sampled that no plan is made by and that is dear or private: JSON, bytes, expressions of indexes',
  async (test) => {
    const sampled = await breaking(
      `select c.relname as table, a.attname as column
     from pg_attribute a join pg_class c on c.oid = a.attrelid left join pg_index i on i.indexrelid = c.oid
     where c.relnamespace = 'app'::regnamespace and a.attnum > 0 and not a.attisdropped
       and coalesce(a.attstattarget, -1) <> 0 and not c.relname = any ($1)
       and (c.relkind = 'r' and a.atttypid in ('jsonb'::regtype, 'bytea'::regtype)
         or c.relkind = 'i' and i.indkey[a.attnum - 1] = 0)`,
      [OF_THE_MIGRATION],
    );
    test.same(sampled, []);
  },
);

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
    `select c.relname as table, a.attname as column, format_type(coalesce(nullif(t.typbasetype, 0), t.oid), null) as type
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     join pg_type t on t.oid = a.atttypid
     where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p') and not c.relname = any ($1)`,
    [OF_THE_MIGRATION],
  );
  const types = [
    'uuid',
    'text',
    'integer',
    'bigint',
    'boolean',
    'jsonb',
    'bytea',
    'timestamp with time zone',
    'date',
    'numeric',
  ];
  for (const { table, column, type } of columns.rows) {
    test.match(table, ['dispatch', 'pull_gate'].includes(table) ? /^[a-z_]+$/ : /^[a-z]+(_[a-z]+)*s$/);
    test.match(column, /^[a-z]+[0-9]*(_[a-z0-9]+)*$/, `${table}.${column}`);
    test.ok(types.includes(type), `${table}.${column} is a ${type}`);
  }
});

t.test(
  'a domain is over text, has one check that is named after it, and lists its values there and nothing else',
  async (test) => {
    const domains = await sql.owner.query<{ name: string; base: string; checks: string[]; definition: string }>(
      `select t.typname as name, t.typbasetype::regtype::text as base, array_agg(k.conname::text) as checks,
       min(pg_get_constraintdef(k.oid)) as definition
     from pg_type t left join pg_constraint k on k.contypid = t.oid and k.contype = 'c'
     where t.typnamespace = 'app'::regnamespace and t.typtype = 'd' group by t.oid`,
    );
    test.ok(domains.rows.length > 30);
    for (const { name, base, checks, definition } of domains.rows) {
      test.same({ base, checks }, { base: 'text', checks: [`${name}_check`] }, name);
      test.match(definition, /^CHECK \(\(VALUE = ANY \(ARRAY\[('\w+'::text(, )?)+\]\)\)\)$/, name);
    }
  },
);

t.test('a column of text that has but a few values has a domain, and no check that lists them', async (test) => {
  const listed = await breaking(
    `select c.relname as table, k.conname from pg_constraint k join pg_class c on c.oid = k.conrelid
     where k.connamespace = 'app'::regnamespace and k.contype = 'c'
       and pg_get_constraintdef(k.oid) ~ '^CHECK \\(\\(\\w+ = ANY \\(ARRAY\\[[^\\]]*\\]\\)\\)\\)$'`,
  );
  test.same(listed, []);
});

/** What lists sort and filter by: columns after the organization. */
const LISTS: Readonly<Record<string, readonly string[]>> = {
  actions: [
    'created_at, id',
    'status, created_at, id',
    'integration_id, created_at, id',
    'task_id, created_at, id',
    'run_id, created_at, id',
    'agent_profile_id, created_at, id',
    'kind, created_at, id',
    'risk, created_at, id',
    'decision, created_at, id',
  ],
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
  // The kind is not sorted by: it passes over the runs of chats without a look at them.
  runs: [
    'created_at, id, kind',
    'task_id, created_at, id',
    'agent_profile_id, created_at, id, kind',
    'status, created_at, id, kind',
  ],
  run_logs: ['run_id, sequence'],
  run_inputs: ['run_id, path'],
  task_dependencies: ['task_id, created_at, id'],
  agent_profiles: ['created_at, id'],
  human_inbox_items: ['status, created_at, id'],
  schedules: ['created_at, id'],
  integrations: ['key'],
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
     where u.place <= i.indnkeyatts
     group by c.relname, i.indexrelid`,
  );
  const indexed = (table: string) => rows.filter((row) => row.table === table).map((row) => row.columns);
  for (const [table, sorts] of Object.entries(LISTS)) {
    for (const sort of sorts) test.ok(indexed(table).includes(`organization_id, ${sort}`), `${table} by ${sort}`);
  }
  test.ok(indexed('organizations').includes('created_at, id'));
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
    ['current_organization', 'task_find', 'timezone_matches', 'uuid_v7'].map((proname) => ({ proname })),
    'what logins call runs with the rights of its owner, save for what reads as they do, or nothing',
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
