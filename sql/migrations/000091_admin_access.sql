-- What the administration reads: every organization, or the one that is set, by columns that are granted one by one.
-- Left out everywhere: hashes of secrets and of calls, where and as what bytes are stored, texts of inputs and attachments,
-- ids of sessions and folders of workers.

-- Organizations that are being deleted: hidden at once, whoever asks, although their rows go later.
create function app.organizations_deleted() returns uuid[]
  language sql stable security definer parallel safe set search_path = pg_catalog, pg_temp
  as $$
    select coalesce(array_agg(o.id), '{}') from app.organizations o where o.deleted_at is not null
  $$;
revoke all on function app.organizations_deleted() from public;
-- A function's owner needs CREATE on its schema at the moment it becomes the owner.
grant create on schema app to runner_global;
alter function app.organizations_deleted() owner to runner_global;
revoke create on schema app from runner_global;

set local role runner_owner;
create index organizations_deleted_at_idx on app.organizations (deleted_at) where deleted_at is not null;

create policy admin_read on app.organizations for select to runner_admin
  using (deleted_at is null
         and ((select app.current_organization()) is null or id = (select app.current_organization())));
grant select (id, slug, name, status, onboarded_at, work_dispatch_stopped_at, root_uri, authorization_epoch, config,
  constraints, deleted_at, created_at, updated_at) on app.organizations to runner_admin;

-- A tenant's: a chat that is being removed is hidden as well.
create policy admin_read on app.chats for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
         and organization_id <> all ((select app.organizations_deleted())::uuid[])
         and removed_at is null);

-- Each subquery is asked once a statement, not once a row.
do $$
declare
  v_table text;
begin
  foreach v_table in array array[
    'agent_profiles', 'chat_attachments', 'context_documents', 'context_health_reports', 'context_publications',
    'context_revisions', 'context_sources', 'dispatch', 'dispatch_lanes', 'human_inbox_items', 'messages',
    'onboardings', 'organization_members', 'research_findings', 'run_inputs', 'run_logs', 'run_outputs',
    'run_requests', 'runs', 'schedules', 'task_dependencies', 'task_inputs', 'task_outcomes', 'tasks']
  loop
    execute format($policy$
      create policy admin_read on app.%I for select to runner_admin
        using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
               and organization_id <> all ((select app.organizations_deleted())::uuid[]))$policy$, v_table);
  end loop;
end
$$;

grant select (revision, ordinal, catalog, published_at) on app.agent_catalogs to runner_admin;
grant select (organization_id, id, key, name, kind, department, status, root_uri, instructions_uri, config,
  tool_policy_narrowed, deleted_at, created_at, updated_at)
  on app.agent_profiles to runner_admin;
grant select (organization_id, chat_id, id, file_name, media_type, size_bytes, sha256, created_at)
  on app.chat_attachments to runner_admin;
grant select (organization_id, id, title, status, summary, settings, is_onboarding, last_message_at, archived_at, created_at,
  updated_at)
  on app.chats to runner_admin;
grant select (organization_id, scope, revision, path, kind, size_bytes, sha256, source_ids)
  on app.context_documents to runner_admin;
grant select (organization_id, revision, version, assessment, context, size_bytes, sha256, created_at)
  on app.context_health_reports to runner_admin;
grant select (organization_id, scope, revision, published_at, unreadable)
  on app.context_publications to runner_admin;
grant select (organization_id, scope, revision, base_revision, created_by, created_at)
  on app.context_revisions to runner_admin;
grant select (organization_id, id, origin, status, kind, file_name, media_type, size_bytes, sha256, department, provenance_urls,
  title, error, created_at)
  on app.context_sources to runner_admin;
grant select (organization_id, kind, capacity, held, open_lanes, stopped, suspended, turn, open)
  on app.dispatch to runner_admin;
grant select (organization_id, agent_profile_id, kind, capacity, ready, held, open)
  on app.dispatch_lanes to runner_admin;
grant select (organization_id, id, kind, status, purpose, blocking, title, body, options, task_id, run_id, action_id, chat_id,
  response, responded_at, created_at, updated_at, note, allow_free_text, schedule_id)
  on app.human_inbox_items to runner_admin;
grant select (organization_id, id, chat_id, reply_to_message_id, role, status, revision, author, parts, error, completed_at,
  created_at, updated_at)
  on app.messages to runner_admin;
grant select (organization_id, status, generation, setup, integrations, chat_id, research_status, research_generation,
  research_attempts, research_started_at, research_finished_at, research_error, research_warnings, review,
  created_at, updated_at)
  on app.onboardings to runner_admin;
grant select (organization_id, subject, role, created_at, updated_at)
  on app.organization_members to runner_admin;
grant select (organization_id, id, origin, claim, source_ids, created_at)
  on app.research_findings to runner_admin;
grant select (organization_id, run_id, path, role, media_type, size, sha256, chat_id)
  on app.run_inputs to runner_admin;
grant select (organization_id, run_id, sequence, category, status, label, detail, occurred_at)
  on app.run_logs to runner_admin;
grant select (organization_id, run_id, path, size, sha256, media_type, created_at)
  on app.run_outputs to runner_admin;
grant select (organization_id, id, kind, task_id, agent_profile_id, mode, state, priority, attempt, fence, lease_expires_at,
  worker_id, run_id, due_at, parked, published_at, cancel_requested_at, finished_at, created_at, chat_id,
  message_id)
  on app.run_requests to runner_admin;
grant select (organization_id, id, kind, task_id, run_request_id, agent_profile_id, attempt, mode, status, worker_id, harness,
  model, log_state, log_count, output, error, receipts, input_tokens, output_tokens, tool_calls, cost_minor_units,
  cost_known, started_at, finished_at, created_at, updated_at, chat_id, message_id)
  on app.runs to runner_admin;
grant select (organization_id, id, key, title, cron, timezone, status, task_template, overlap, next_run_at, last_run_at,
  last_task_id, failing_since, created_at, updated_at)
  on app.schedules to runner_admin;
grant select (organization_id, id, task_id, depends_on_task_id, root_task_id, depends_on_root_task_id, required, created_at)
  on app.task_dependencies to runner_admin;
grant select (organization_id, task_id, path, size, sha256, media_type, created_at)
  on app.task_inputs to runner_admin;
grant select (organization_id, run_id, task_id, kind, task_version, graph_revision, outcome, reference_ids, applied_at,
  created_at)
  on app.task_outcomes to runner_admin;
grant select (organization_id, id, identifier_scope, identifier_number, parent_id, root_task_id, depth, owner_agent_profile_id,
  source_chat_id, source_message_id, kind, status, phase, title, priority, version, graph_revision, agent_run_count,
  consumed_agent_run_count, replan_count, completion_revision, created_by_run_id, spec, blockers, active_run_id,
  contract, answers, waiting_until, waiting_reason, error, result, failure_origin_id, dedupe_key, scheduled_at,
  due_at, started_at, completed_at, created_at, updated_at, replan, verification, schedule_id, spend_limited,
  spent_cost_minor_units, spent_tokens, cost_known_run_count)
  on app.tasks to runner_admin;

-- The newest over all organizations; those of one organization have an index already.
create index tasks_all_created_at_idx on app.tasks (created_at, id);
create index runs_all_created_at_idx on app.runs (created_at, id);
create index run_requests_all_created_at_idx on app.run_requests (created_at, id);

reset role;

grant execute on function app.organizations_deleted() to runner_admin;
