import { randomUUID } from 'node:crypto';
import type { ClientBase } from 'pg';
import t from 'tap';
import { connected, createAnalyst } from './support/analysts.ts';
import { OWNER } from './support/fixtures.ts';
import { createTenant } from './support/tenant.ts';
import { openSql, transition } from './support/transitions.ts';

const sql = await openSql(t);

const ROLES = [
  'runner_api',
  'runner_jobs',
  'runner_admin',
  'runner_report',
  'runner_analyst',
  'runner_scoped',
  'runner_global',
] as const;
const VERBS = ['select', 'insert', 'update', 'delete'] as const;
const TENANTS = ['own', 'other', 'none'] as const;

type Role = (typeof ROLES)[number];
type Verb = (typeof VERBS)[number];
type Tenant = (typeof TENANTS)[number];
/** `reached`: the verb works on the row. `hidden`: it runs, and finds no row. `refused`: permission denied. */
type Outcome = 'reached' | 'hidden' | 'refused';

/**
 * The rules: the tenant's transition functions (runner_scoped) do everything to rows of the tenant that is set; the API
 * reads them; nobody else touches them. Exceptions are named here, by table.
 */
/** Secrets, and digests of what opens something. */
const SEALED = [
  'integration_secrets',
  'integration_oauth_states',
  'integration_gateway_capabilities',
  'insight_pseudonym_keys',
];
const NOT_READ_BY_API = [
  'task_identifiers',
  'idempotency_keys',
  'message_chunks',
  'action_invocations',
  'action_invocation_files',
  ...SEALED,
];
const READ_BY_JOBS = [
  'schedules',
  'organizations',
  'agent_profiles',
  'tasks',
  'run_requests',
  'runs',
  'dispatch',
  'dispatch_lanes',
  'context_sources',
  'context_revisions',
  'context_documents',
  'context_publications',
  'context_health_reports',
  'integrations',
  'integration_tools',
  'integration_connections',
  'integration_context_repairs',
  'insight_heads',
  'insight_connectors',
  'insight_sources',
  'insight_cursors',
  'insight_units',
  'insight_segments',
  'insight_publications',
  'insight_compactions',
  'onboardings',
  'research_findings',
];
/** The administration reads the rest: of every tenant, or of the one that is set. */
const NOT_READ_BY_ADMIN = [
  'task_identifiers',
  'idempotency_keys',
  'message_chunks',
  'action_invocations',
  'action_invocation_files',
  ...SEALED,
];
/** Nobody's to change, not even the transitions'. */
const APPEND_ONLY = ['audit_entries'];
/** What the named cross-tenant functions (runner_global) do to rows of every tenant. */
const GLOBAL: Readonly<Record<string, readonly Verb[]>> = {
  organizations: ['select'],
  organization_members: ['select'],
  agent_profiles: ['select'],
  tasks: ['select'],
  runs: ['select'],
  chats: ['select'],
  messages: ['select'],
  message_chunks: ['select'],
  human_inbox_items: ['select'],
  schedules: ['select'],
  context_publications: ['select'],
  context_health_reports: ['select'],
  run_requests: ['select', 'update'],
  dispatch: ['select', 'update'],
  dispatch_lanes: ['select', 'update'],
  idempotency_keys: ['select', 'update', 'delete'],
  analyst_grants: ['select', 'insert', 'delete'],
  integration_connections: ['select'],
  integration_secrets: ['select'],
  integration_oauth_states: ['select', 'delete'],
  integration_gateway_capabilities: ['select', 'delete'],
  integration_context_repairs: ['select'],
  actions: ['select'],
  action_invocations: ['select'],
  action_invocation_files: ['select'],
  insight_pseudonym_keys: ['select'],
  insight_heads: ['select'],
  insight_connectors: ['select'],
  insight_sources: ['select'],
  insight_units: ['select', 'delete'],
  insight_segments: ['select'],
  insight_compactions: ['select'],
};
/** Read by the views for analysts: here as an operator, who sees every tenant. What a login sees: test/sql/reporting. */
const REPORTED = [
  'actions',
  'organizations',
  'agent_profiles',
  'tasks',
  'task_dependencies',
  'runs',
  'run_logs',
  'run_requests',
  'chats',
  'messages',
  'chat_attachments',
  'human_inbox_items',
  'schedules',
  'integrations',
  'integration_tools',
  'integration_connections',
  'insight_sources',
  'insight_cursors',
  'insight_units',
  'context_revisions',
  'context_documents',
  'context_publications',
  'context_sources',
  'onboardings',
  'research_findings',
  'audit_entries',
];
/** Given by operators, and no matter of the tenant's transitions or of its readers. */
const OF_OPERATORS = ['analyst_grants'];
/** Tables that belong to no tenant: who does what. */
const SHARED: Readonly<Record<string, Partial<Record<Role, readonly Verb[]>>>> = {
  agent_catalogs: {
    runner_global: ['select', 'insert'],
    runner_scoped: ['select'],
    runner_api: ['select'],
    runner_admin: ['select'],
  },
  currency_rates: { runner_global: ['select', 'insert', 'update'], runner_api: ['select'], runner_admin: ['select'] },
  currency_rate_sources: { runner_global: ['select', 'update'], runner_jobs: ['select'], runner_admin: ['select'] },
  pull_gate: { runner_global: ['select', 'update'] },
  rate_limit_buckets: { runner_global: ['select', 'insert', 'update', 'delete'] },
  schema_migrations: { runner_api: ['select'], runner_jobs: ['select'], runner_admin: ['select'] },
  schema_files: {},
  analysts: { runner_global: ['select', 'insert', 'update', 'delete'], runner_report: ['select'] },
};

function expected(table: string, role: Role, tenant: Tenant, verb: Verb): Outcome {
  const shared = SHARED[table];
  if (shared) return shared[role]?.includes(verb) ? 'reached' : 'refused';
  if (role === 'runner_global') return GLOBAL[table]?.includes(verb) ? 'reached' : 'refused';
  if (verb === 'update' && APPEND_ONLY.includes(table)) return 'refused';
  if (OF_OPERATORS.includes(table)) return role === 'runner_report' && verb === 'select' ? 'hidden' : 'refused';
  if (role === 'runner_report') return REPORTED.includes(table) && verb === 'select' ? 'reached' : 'refused';
  const visible = tenant === 'own' ? 'reached' : 'hidden';
  // A row of another tenant is not there to be changed, and may not be put there.
  if (role === 'runner_scoped') return verb === 'insert' && tenant !== 'own' ? 'refused' : visible;
  if (role === 'runner_admin' && !NOT_READ_BY_ADMIN.includes(table) && verb === 'select') {
    return tenant === 'none' ? 'reached' : visible;
  }
  const reads =
    (role === 'runner_api' && !NOT_READ_BY_API.includes(table)) ||
    (role === 'runner_jobs' && READ_BY_JOBS.includes(table));
  return reads && verb === 'select' ? visible : 'refused';
}

type Table = Readonly<{ name: string; tenantColumn: string | null; columns: readonly string[] }>;

async function tables(): Promise<Table[]> {
  const { rows } = await sql.owner.query<{ name: string; columns: string[] }>(
    `select c.relname as name, array_agg(a.attname::text order by a.attnum) filter (where a.attgenerated = '' and a.attidentity = '') as columns
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p', 'm', 'v', 'f') group by c.relname order by 1`,
  );
  return rows.map(({ name, columns }) => {
    const tenantColumn =
      name === 'organizations' ? 'id' : columns.includes('organization_id') ? 'organization_id' : null;
    return { name, columns, tenantColumn };
  });
}

function statement(table: Table, verb: Verb, where: string): string {
  const target = `app.${table.name}`;
  const column = table.tenantColumn ?? table.columns[0];
  if (verb === 'select') return `select ${column} from ${target} ${where}`;
  if (verb === 'delete') return `delete from ${target} ${where}`;
  if (verb === 'update') return `update ${target} set ${column} = ${column} ${where}`;
  const list = table.columns.join(', ');
  return `insert into ${target} (${list}) select ${list} from jsonb_populate_record(null::${target}, $1)`;
}

/** Refused before the row is looked at; anything that constraints or triggers say comes after the permission. */
const AFTER_PERMISSION = ['23505', '23503', 'P0001', '23001'];

async function attempt(client: ClientBase, table: Table, verb: Verb, target: string, row: unknown): Promise<Outcome> {
  const where = table.tenantColumn ? `where ${table.tenantColumn} = '${target}'` : '';
  await client.query('savepoint attempt');
  try {
    const { rowCount } = await client.query(statement(table, verb, where), verb === 'insert' ? [row] : []);
    return (rowCount ?? 0) > 0 ? 'reached' : 'hidden';
  } catch (error) {
    const code = String((error as { code?: string }).code);
    if (code === '42501') return 'refused';
    if (AFTER_PERMISSION.includes(code)) return 'reached';
    throw error;
  } finally {
    await client.query('rollback to savepoint attempt');
  }
}

const own = await createTenant(sql);
const other = await createTenant(sql);
await sql.owner.query(`insert into app.agent_catalogs (revision, catalog) values ($1, '{}')`, ['0'.repeat(64)]);
await sql.owner.query(`insert into app.currency_rates (currency, day, rate) values ('EUR', '2026-01-02', 1)`);
const every = await tables();

t.test('every table of a tenant has rows of both tenants, or the matrix would say nothing about it', async (test) => {
  for (const table of every) {
    for (const org of [own, other]) {
      const where = table.tenantColumn ? `where ${table.tenantColumn} = '${org.organizationId}'` : '';
      const { rows } = await sql.owner.query(`select count(*)::int as n from app.${table.name} ${where}`);
      test.ok(rows[0].n > 0, table.name);
    }
    test.ok(table.tenantColumn !== null || table.name in SHARED, `${table.name} is a tenant's, or named as shared`);
  }
});

for (const table of every) {
  t.test(`${table.name}: who reads and writes which tenant's rows`, async (test) => {
    const client = await sql.owner.connect();
    await client.query('begin');
    try {
      const outcomes: Record<string, Outcome> = {};
      const expectations: Record<string, Outcome> = {};
      for (const tenant of TENANTS) {
        const target = tenant === 'other' ? other.organizationId : own.organizationId;
        const where = table.tenantColumn ? `where ${table.tenantColumn} = '${target}'` : '';
        const { rows } = await client.query(`select to_jsonb(r) as row from app.${table.name} r ${where} limit 1`);
        for (const role of ROLES) {
          await client.query('savepoint role');
          await client.query(`set local role ${role}`);
          await client.query(`select set_config('app.organization_id', $1, true)`, [
            tenant === 'none' ? '' : own.organizationId,
          ]);
          for (const verb of VERBS) {
            const key = `${role} ${verb}, ${tenant}`;
            outcomes[key] = await attempt(client, table, verb, target, rows[0].row);
            expectations[key] = expected(table.name, role, tenant, verb);
          }
          await client.query('rollback to savepoint role');
        }
      }
      test.same(outcomes, expectations);
    } finally {
      await client.query('rollback');
      client.release();
    }
  });
}

/** What the logins of analysts read through the views: whose rows, and whatever tenant is set. */
const LOGINS = {
  own: ['own'],
  both: ['own', 'other'],
  all: ['own', 'other'],
  nothing: [],
} as const;

t.test('the views: which login of an analyst reads which tenant’s rows', async (test) => {
  const ids = { own: own.organizationId, other: other.organizationId };
  const made = {
    own: await createAnalyst(test, sql, { organizationIds: [ids.own] }),
    both: await createAnalyst(test, sql, { organizationIds: [ids.own, ids.other] }),
    all: await createAnalyst(test, sql, { all: true }),
    nothing: await createAnalyst(test, sql, { organizationIds: [] }),
  };
  const { rows: views } = await sql.owner.query<{ name: string; own: boolean }>(
    `select relname as name from pg_class where relnamespace = 'reporting'::regnamespace order by 1`,
  );
  test.ok(views.length > 15);
  for (const { name } of views) {
    const count = async (client: ClientBase, id: string) =>
      (await client.query(`select from reporting.${name} where organization_id = $1`, [id])).rowCount ?? 0;
    // An operator sees all of them.
    const there = {
      own: await connected(sql.url, (client) => count(client, ids.own)),
      other: await connected(sql.url, (client) => count(client, ids.other)),
    };
    for (const login of ['own', 'both', 'all', 'nothing'] as const) {
      await connected(made[login].url, async (client) => {
        for (const set of ['', ids.own, ids.other]) {
          await client.query(`select set_config('app.organization_id', $1, false)`, [set]);
          for (const tenant of ['own', 'other'] as const) {
            const reads: readonly string[] = LOGINS[login];
            const seen = reads.includes(tenant) ? there[tenant] : 0;
            test.equal(await count(client, ids[tenant]), seen, `${name}: the rows of ${tenant}, for ${login}`);
          }
        }
      });
    }
  }
});

t.test('a tenant that was set in one transaction is not there in the next', async (test) => {
  const client = await sql.api.connect();
  try {
    await client.query('begin');
    await client.query(`select set_config('app.organization_id', $1, true)`, [own.organizationId]);
    test.ok((await client.query('select id from app.tasks')).rowCount);
    await client.query('commit');
    test.equal((await client.query('select id from app.tasks')).rowCount, 0);
    const task = { title: 'x', ownerAgentProfileId: own.profileId, dedupeKey: randomUUID() };
    await transition(client, 'task_create', { organizationId: own.organizationId, task, actor: OWNER });
    test.equal((await client.query('select id from app.tasks')).rowCount, 0, 'nor after a transition');
  } finally {
    client.release();
  }
});

t.test('secrets of leases and of calls are nobody’s to read, not even by name', async (test) => {
  for (const pool of [sql.api, sql.jobs, sql.admin]) {
    await test.rejects(pool.query('select lease_secret_hash from app.run_requests'), { code: '42501' });
    await test.rejects(pool.query('select lease_secret_hash from app.runs'), { code: '42501' });
    await test.rejects(pool.query('select * from app.runs'), { code: '42501' });
    await test.rejects(pool.query('select execution_token_hash from app.run_requests'), { code: '42501' });
  }
});
