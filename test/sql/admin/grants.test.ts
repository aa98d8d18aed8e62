import { randomUUID } from 'node:crypto';
import t from 'tap';
import { createTenant } from '../../support/tenant.ts';
import { openSql, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const own = await createTenant(sql);
const other = await createTenant(sql);

/** Every column that the administration may read. A new one is denied until it stands here, and in a migration. */
const GRANTED: Readonly<Record<string, string>> = {
  action_files: 'organization_id action_id argument name content_type size_bytes sha256',
  actions:
    'organization_id id integration_id integration_key provider agent_profile_id task_id run_id chat_id message_id invocation_id retry_of kind tool summary risk arguments_sha256 timeout_ms status version requires_approval decision decided_by decision_note decided_at execution_attempts execution_started_at execution_finished_at error lease_expires_at due_at look_up_count look_up_until reconciliation reconciliation_note reconciled_by reconciled_at reason expires_at created_at updated_at',
  agent_catalogs: 'revision ordinal catalog published_at',
  agent_profiles:
    'organization_id id key name kind department status root_uri instructions_uri config tool_policy_narrowed deleted_at created_at updated_at',
  audit_entries:
    'organization_id id created_at actor_kind actor action subject_kind subject_id arguments outcome code result request_id',
  chat_attachments: 'organization_id chat_id id file_name media_type size_bytes sha256 created_at',
  chats:
    'organization_id id title status summary settings is_onboarding last_message_at archived_at created_at updated_at',
  context_documents: 'organization_id scope revision path kind size_bytes sha256 source_ids',
  context_health_reports: 'organization_id revision version assessment context size_bytes sha256 created_at',
  context_publications: 'organization_id scope revision published_at unreadable',
  context_revisions: 'organization_id scope revision base_revision created_by created_at',
  context_sources:
    'organization_id id origin status kind file_name media_type size_bytes sha256 department provenance_urls title excerpt page_text error created_at',
  currency_rate_sources:
    'key due_at fence lease_expires_at newest_day history_loaded_at looked_at failure_count error_code',
  currency_rates: 'currency day rate',
  dispatch: 'organization_id kind capacity held open_lanes stopped suspended served_at open',
  dispatch_lanes: 'organization_id agent_profile_id kind capacity ready held open',
  human_inbox_items:
    'organization_id id kind status purpose blocking title body options task_id run_id action_id chat_id response responded_at created_at updated_at note allow_free_text schedule_id',
  insight_compactions:
    'compacted_at due_at failure_count is_whole last_error lease_expires_at month organization_id revision source_id',
  insight_connectors:
    'discovered_at discovered_revision discovery_due_at due_at failure_count integration_id last_error lease_expires_at organization_id retry_not_before',
  insight_cursors: 'claimed_at completed_at due_at failure_count mode organization_id source_id',
  insight_heads: 'organization_id revision sweep_at updated_at',
  insight_publications: 'added organization_id published_at retired revision source_id unit_id',
  insight_segments:
    'created_at distinct_keys id max_at min_at month organization_id published_revision retired_at retired_revision row_count schema_version sha256 size_bytes source_id staged',
  insight_sources:
    'account_id adapter_version authorization_epoch connection_revision connector_key coverage created_at dataset environment failure_count generation id in_scope integration_id last_completed_at last_error organization_id provider resource_id schema_version timezone updated_at',
  insight_units:
    'bytes changed ended_at error id integration_id mode organization_id pages records revision source_id started_at state',
  integration_connections:
    'organization_id integration_id kind account_label granted_scopes connected_at token_version token_expires_at refresh_due_at refresh_lease_expires_at reauthorization_reason reauthorization_at degraded_at degraded_code checked_at check_due_at',
  integration_context_repairs:
    'organization_id id integration_id mapping status report_revision created_at finished_at',
  integration_tools:
    'organization_id integration_id key place title description effect risk required_scopes input_schema digest enabled offered',
  integrations:
    'organization_id id key provider name status access_mode services departments settings_required settings context_mapping connection_revision discovery_at discovery_status discovery_error created_at updated_at',
  messages:
    'organization_id id chat_id reply_to_message_id role status revision author parts error completed_at created_at updated_at',
  onboardings:
    'organization_id status generation setup integrations chat_id research_status research_generation research_attempts research_started_at research_finished_at research_error research_warnings review created_at updated_at',
  organization_members: 'organization_id subject role created_at updated_at',
  organizations:
    'id slug name status onboarded_at work_dispatch_stopped_at root_uri authorization_epoch config constraints deleted_at created_at updated_at',
  research_findings: 'organization_id id origin claim source_ids created_at',
  run_inputs: 'organization_id run_id path role media_type size sha256 chat_id',
  run_logs: 'organization_id run_id sequence category status label detail occurred_at',
  run_outputs: 'organization_id run_id path size sha256 media_type created_at',
  run_requests:
    'organization_id id kind task_id agent_profile_id mode state priority attempt fence lease_expires_at worker_id run_id due_at parked published_at cancel_requested_at finished_at created_at chat_id message_id',
  runs: 'organization_id id kind task_id run_request_id agent_profile_id attempt mode status worker_id harness model log_state log_count output error receipts input_tokens output_tokens tool_calls cost_minor_units cost_known started_at finished_at created_at updated_at chat_id message_id',
  schedules:
    'organization_id id key title cron timezone status task_template overlap version next_run_at last_run_at last_task_id failing_since created_at updated_at',
  schema_migrations: 'version name sha256 applied_at',
  task_dependencies:
    'organization_id id task_id depends_on_task_id root_task_id depends_on_root_task_id required created_at',
  task_inputs: 'organization_id task_id path size sha256 media_type created_at',
  task_outcomes:
    'organization_id run_id task_id kind task_version graph_revision outcome reference_ids applied_at created_at',
  tasks:
    'organization_id id identifier_scope identifier_number parent_id root_task_id depth owner_agent_profile_id source_chat_id source_message_id kind status phase title priority version graph_revision agent_run_count consumed_agent_run_count replan_count completion_revision created_by_run_id spec blockers active_run_id contract answers waiting_until waiting_reason error result failure_origin_id dedupe_key scheduled_at due_at started_at completed_at created_at updated_at replan verification schedule_id spend_limited spent_cost_minor_units spent_tokens cost_known_run_count',
};

/** What nobody but the transitions may ever see. */
const SECRETS = [
  'action_files.storage_key',
  'actions.arguments',
  'actions.lease_id',
  'run_requests.lease_secret_hash',
  'run_requests.execution_token_hash',
  'runs.lease_secret_hash',
  'runs.finish_hash',
  'run_inputs.content',
  'run_outputs.storage_key',
  'chat_attachments.storage_key',
  'messages.search_text',
  'idempotency_keys.response',
  'insight_pseudonym_keys.ciphertext',
  'insight_pseudonym_keys.wrapped_key',
  'insight_segments.object_key',
  'integration_connections.subject_hash',
  'integration_connections.grant_hash',
  'integration_secrets.wrapped_key',
  'integration_secrets.ciphertext',
  'integration_oauth_states.state_hash',
  'integration_oauth_states.ciphertext',
  'integration_gateway_capabilities.token_hash',
  'chats.harness_session_id',
];

t.test('the administration reads the columns that are listed here, and no others', async (test) => {
  const { rows } = await sql.owner.query<{ table: string; columns: string }>(
    `select c.relname as table, string_agg(a.attname, ' ' order by a.attname) as columns
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')
       and has_column_privilege('runner_admin', c.oid, a.attnum, 'select')
     group by c.relname order by c.relname`,
  );
  const found = Object.fromEntries(rows.map(({ table, columns }) => [table, columns]));
  const sorted = Object.entries(GRANTED).map(([table, columns]) => [table, columns.split(' ').sort().join(' ')]);
  test.same(found, Object.fromEntries(sorted));
});

t.test('secrets are refused by name', async (test) => {
  for (const secret of SECRETS) {
    const [table, column] = secret.split('.');
    await test.rejects(sql.admin.query(`select ${column} from app.${table}`), { code: '42501' }, secret);
  }
});

t.test('without an organization every one is read, with one that one alone', async (test) => {
  const count = async (organizationId: string) => {
    const { rows } = await sql.admin.query<{ ids: string[] }>(
      `with scope as materialized (select set_config('app.organization_id', $1, true))
       select array_agg(distinct k.organization_id::text order by k.organization_id::text) as ids
       from scope cross join lateral (select organization_id from app.tasks offset 0) k`,
      [organizationId],
    );
    return rows[0]?.ids ?? [];
  };
  test.same(await count(''), [own.organizationId, other.organizationId].sort());
  test.same(await count(own.organizationId), [own.organizationId]);
  test.same(await count(randomUUID()), []);
});

t.test('a deleted organization is hidden at once, with all that is its', async (test) => {
  const gone = await createTenant(sql);
  await transition(sql.api, 'organization_delete', { organizationId: gone.organizationId });
  for (const table of Object.keys(GRANTED)) {
    const column = table === 'organizations' ? 'id' : 'organization_id';
    // Decisions are kept as long as their organization, and nobody needs them more than who asks why it is gone.
    if (!GRANTED[table]?.split(' ').includes(column) || table === 'audit_entries') continue;
    const { rowCount } = await sql.admin.query(`select ${column} from app.${table} where ${column} = $1`, [
      gone.organizationId,
    ]);
    test.equal(rowCount, 0, table);
  }
});

t.test(
  'a chat whose removal has begun is hidden with its messages and attachments, and others are not',
  async (test) => {
    const gone = await createTenant(sql);
    const count = async (table: string, organizationId: string) => {
      const { rows } = await sql.admin.query<{ n: number }>(
        `select count(*)::int as n from app.${table} where organization_id = $1`,
        [organizationId],
      );
      return rows[0]?.n ?? 0;
    };
    const tables = ['chats', 'messages', 'chat_attachments'];
    for (const table of tables) test.ok((await count(table, gone.organizationId)) > 0, table);
    await sql.owner.query(
      `update app.chats set status = 'archived', archived_at = coalesce(archived_at, now()), removed_at = now()
     where organization_id = $1`,
      [gone.organizationId],
    );
    for (const table of tables) {
      test.equal(await count(table, gone.organizationId), 0, table);
      test.ok((await count(table, own.organizationId)) > 0, table);
    }
  },
);

t.test('the administration writes nothing, not even by a connection that might', async (test) => {
  for (const table of Object.keys(GRANTED)) {
    await test.rejects(sql.admin.query(`delete from app.${table}`), { code: '42501' }, table);
  }
});
