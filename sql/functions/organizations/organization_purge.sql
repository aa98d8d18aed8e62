-- Removes up to p_limit rows of a deleted organization, children first, in a transaction per call. The deletion job calls it
-- until it returns {done: true}; a crash between two calls loses nothing. The organization's own row stays until p_forget:
-- while it exists nobody can take the id, so everything stored under the id belongs to the deleted organization.
-- {done: true, gone: true}: the row is already gone. Codes: 409 state_conflict (not deleted; nothing changes).
create or replace function app.organization_purge(p_organization_id uuid, p_limit integer, p_forget boolean)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_table text;
  v_removed integer;
begin
  perform 1 from app.organizations where id = p_organization_id;
  if not found then
    return '{"done": true, "gone": true}';
  end if;
  if not exists (select 1 from app.organizations where id = p_organization_id and deleted_at is not null) then
    perform app.fail(409, 'state_conflict', 'The organization is not deleted');
  end if;
  foreach v_table in array array['action_invocation_files', 'action_invocations', 'action_files', 'actions', 'integration_gateway_capabilities', 'integration_context_repairs', 'integration_oauth_states',
      'integration_secrets', 'integration_connections', 'integration_tools', 'integrations', 'run_logs', 'run_outputs', 'run_inputs', 'task_outcomes', 'runs', 'run_requests',
      'human_inbox_items', 'schedules', 'task_dependencies', 'task_inputs', 'research_findings', 'onboardings',
      'chat_attachments', 'message_chunks', 'messages', 'chats', 'context_publications', 'context_documents', 'context_revisions',
      'context_health_reports', 'context_sources', 'audit_entries', 'idempotency_keys'] loop
    execute format('delete from app.%1$I where ctid = any (array(
      select ctid from app.%1$I where organization_id = $1 limit $2))', v_table) using p_organization_id, p_limit;
    get diagnostics v_removed = row_count;
    if v_removed > 0 then
      return jsonb_build_object('done', false, 'table', v_table, 'removed', v_removed);
    end if;
  end loop;
  -- Deepest first: a task is removed after those below it.
  delete from app.tasks where organization_id = p_organization_id and id = any (array(
    select id from app.tasks where organization_id = p_organization_id order by depth desc limit p_limit));
  get diagnostics v_removed = row_count;
  if v_removed > 0 then
    return jsonb_build_object('done', false, 'table', 'tasks', 'removed', v_removed);
  end if;
  delete from app.agent_profiles where organization_id = p_organization_id;
  delete from app.organization_members where organization_id = p_organization_id;
  if p_forget then
    -- A decision in progress at the deletion writes its entry before this lock, or not at all.
    perform 1 from app.organizations where id = p_organization_id for update;
    delete from app.audit_entries where organization_id = p_organization_id;
    delete from app.organizations where id = p_organization_id;
  end if;
  return jsonb_build_object('done', true, 'gone', p_forget);
end
$$;
