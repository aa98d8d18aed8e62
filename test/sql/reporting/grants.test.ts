import { readFile } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import { dictionary } from '../../../scripts/analyst/dictionary.ts';
import { connected, createAnalyst, openReporting } from '../../support/analysts.ts';
import { createTestOrganization } from '../../support/fixtures.ts';

const sql = await openReporting(t);
const { organizationId } = await createTestOrganization(sql);
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
      'action_outcomes',
      'actions',
      'agent_profiles',
      'audit',
      'chats',
      'context_revisions',
      'contract_failures',
      'cost_by_initiative',
      'cost_outside_initiatives',
      'inbox_items',
      'insight_collections',
      'insight_sources',
      'integrations',
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
  test.equal(written, made, 'made by npm run generate');
});

/** Columns that Postgres samples besides ids and times: states and kinds, of a closed list, and numbers that count up. */
const SAMPLED: Readonly<Record<string, string>> = {
  actions: 'decision execution_attempts kind reconciliation risk status',
  agent_profiles: 'department kind status',
  audit_entries: 'actor_kind outcome',
  chats: 'status',
  context_documents: 'revision scope',
  context_publications: 'revision scope',
  context_revisions: 'base_revision revision scope',
  context_sources: 'origin status',
  human_inbox_items: 'kind purpose status',
  insight_sources: 'environment generation',
  insight_units: 'mode revision state',
  integration_connections: 'kind reauthorization_reason',
  integration_tools: 'effect',
  integrations: 'access_mode discovery_status status',
  messages: 'revision role status',
  onboardings: 'research_status status',
  organizations: 'status',
  run_logs: 'category sequence status',
  run_requests: 'attempt kind mode state',
  runs: 'attempt kind log_state mode status',
  schedules: 'overlap status',
  tasks: 'depth identifier_number identifier_scope kind phase status',
};

t.test(
  'of what the views show, EXPLAIN estimates by ids, times, states, kinds and numbers that count up alone',
  async (test) => {
    const { rows } = await sql.owner.query<{ table: string; columns: string }>(
      `select c.relname as table, string_agg(a.attname, ' ' order by a.attname collate "C") as columns
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p')
       and c.relname not in ('analysts', 'analyst_grants')
       and has_column_privilege('runner_report', c.oid, a.attnum, 'select')
       and a.atttypid not in ('uuid'::regtype, 'timestamptz'::regtype, 'boolean'::regtype, 'jsonb'::regtype)
       and a.attstattarget is distinct from 0
     group by c.relname order by c.relname`,
    );
    test.same(Object.fromEntries(rows.map((row) => [row.table, row.columns])), SAMPLED);
  },
);

/** What the owner of the views reads: of what people or agents wrote, titles and names alone. */
const READ: Readonly<Record<string, string>> = {
  actions:
    'agent_profile_id chat_id created_at decided_at decision error execution_attempts execution_finished_at ' +
    'execution_started_at id integration_id integration_key kind organization_id provider reason reconciled_at ' +
    'reconciliation requires_approval retry_of risk run_id status task_id tool updated_at',
  agent_profiles: 'config created_at deleted_at department id key kind name organization_id status updated_at',
  analyst_grants: 'created_at login login_oid organization_id',
  analysts: 'all_organizations created_at login login_oid',
  audit_entries:
    'action actor actor_kind code created_at id organization_id outcome request_id subject_id subject_kind',
  chat_attachments: 'chat_id organization_id size_bytes',
  chats: 'archived_at created_at id is_onboarding last_message_at organization_id removed_at status updated_at',
  context_documents: 'organization_id revision scope size_bytes',
  context_publications: 'organization_id published_at revision scope',
  context_revisions: 'base_revision created_at created_by organization_id revision scope',
  context_sources: 'organization_id origin status',
  human_inbox_items:
    'blocking chat_id created_at id kind organization_id purpose responded_at run_id schedule_id status ' +
    'task_id updated_at',
  insight_cursors: 'due_at organization_id source_id',
  insight_sources:
    'connector_key coverage created_at dataset environment failure_count generation id in_scope integration_id ' +
    'last_completed_at last_error organization_id provider resource_id timezone updated_at',
  insight_units:
    'bytes changed ended_at error id integration_id mode organization_id pages records revision source_id ' +
    'started_at state',
  integration_connections:
    'checked_at connected_at degraded_at degraded_code integration_id kind organization_id reauthorization_at ' +
    'reauthorization_reason',
  integration_tools: 'effect enabled integration_id offered organization_id',
  integrations:
    'access_mode created_at discovery_at discovery_status id key name organization_id provider settings ' +
    'settings_required status updated_at',
  messages:
    'chat_id completed_at created_at error id organization_id reply_to_message_id revision role ' + 'status updated_at',
  onboardings:
    'created_at generation organization_id research_attempts research_error research_finished_at ' +
    'research_started_at research_status research_warnings status updated_at',
  organizations: 'config created_at deleted_at id name onboarded_at slug status updated_at work_dispatch_stopped_at',
  research_findings: 'organization_id',
  run_logs: 'category occurred_at organization_id run_id sequence status',
  run_requests:
    'agent_profile_id attempt cancel_requested_at chat_id created_at due_at finished_at id kind message_id ' +
    'mode organization_id parked priority published_at state task_id',
  runs:
    'agent_profile_id attempt chat_id cost_known cost_minor_units created_at error finished_at harness id ' +
    'input_tokens kind log_count log_state message_id mode model organization_id output output_tokens ' +
    'run_request_id started_at status task_id tool_calls worker_id',
  schedules:
    'created_at cron failing_since id key last_run_at last_task_id next_run_at organization_id overlap status ' +
    'timezone title updated_at',
  task_dependencies: 'created_at depends_on_task_id id organization_id required task_id',
  tasks:
    'agent_run_count blockers completed_at consumed_agent_run_count created_at created_by_run_id depth due_at ' +
    'error failure_origin_id id identifier_number identifier_scope kind organization_id owner_agent_profile_id ' +
    'parent_id phase priority replan_count root_task_id schedule_id scheduled_at source_chat_id ' +
    'source_message_id spec started_at status title updated_at waiting_until',
};

t.test('the owner of the views reads these columns: one more is a decision, not an oversight', async (test) => {
  const { rows } = await sql.owner.query<{ table: string; columns: string }>(
    `select c.relname as table, string_agg(a.attname, ' ' order by a.attname collate "C") as columns
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p')
       and has_column_privilege('runner_report', c.oid, a.attnum, 'select')
     group by c.relname order by c.relname`,
  );
  test.same(Object.fromEntries(rows.map((row) => [row.table, row.columns])), READ);
});

t.test('every policy of the views asks first whose a row is, by what costs nothing', async (test) => {
  const { rows } = await sql.owner.query<{ table: string; shows: string }>(
    `select c.relname as table, pg_get_expr(p.polqual, p.polrelid) as shows
     from pg_policy p join pg_class c on c.oid = p.polrelid
     where p.polroles @> array['runner_report'::regrole::oid] and c.relname <> 'analyst_grants'`,
  );
  test.ok(rows.length > 15);
  for (const { table, shows } of rows) {
    const key = table === 'organizations' ? 'id' : 'organization_id';
    test.match(shows, new RegExp(`^\\(app\\.report_shows\\(${key}, `), table);
    test.match(shows, /login_oid = \(+to_regrole\(quote_ident\(\(?SESSION_USER\)?/i, table);
  }
});
