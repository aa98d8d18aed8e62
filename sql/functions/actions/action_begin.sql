-- Action approved → executing: the intent, committed before anything is sent. Everything is checked again, under locks: what is not as
-- it was → cancelled with the reason; an approval that is required by now → awaiting_approval, with an item in the inbox; a provider
-- that fails or limits us → approved, due at the next look at the connection.
-- p_files: [{argument, sizeBytes, sha256}], as the caller has just read them.
-- p_obstacle: why the caller cannot send it. It is checked all the same, and not begun: connection (which could not be opened) → approved,
-- due again after half a minute; any other one → cancelled, with it as the reason.
-- p_seconds: the lease from now on. After it, and the time-out of the action, what became of it is looked up. A repeat by the holder of
-- the lease returns the same; the caller sends it once, however often it has called this, and only while the lease leaves the time.
-- Returns {begun, action, leaseExpiresAt}; begun false: nothing is sent.
-- Locks: organization, integration, connection, profile (shared) → root → action → inbox item → … as task_settle.
-- Codes: 404 organization_not_found | action_not_found, 409 state_conflict (lease_taken).
create or replace function app.action_begin(
  p_organization_id uuid, p_action_id uuid, p_lease_id uuid, p_seconds integer, p_files jsonb, p_approval_days integer,
  p_obstacle text default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_reason text;
  v_now timestamptz;
  o app.organizations;
  i app.integrations;
  c app.integration_connections;
  p app.agent_profiles;
  t app.integration_tools;
  a app.actions;
begin
  select * into o from app.organizations where id = p_organization_id for share;
  -- What an action names never changes.
  select * into a from app.actions where organization_id = p_organization_id and id = p_action_id;
  select * into i from app.integrations where organization_id = p_organization_id and id = a.integration_id for share;
  select * into c from app.integration_connections
    where organization_id = p_organization_id and integration_id = i.id for share;
  select * into p from app.agent_profiles where organization_id = p_organization_id and id = a.agent_profile_id for share;
  select * into t from app.integration_tools
    where organization_id = p_organization_id and integration_id = i.id and key = a.tool and a.kind = 'provider_write';
  a := app.action_lock(p_organization_id, p_action_id, true);
  v_now := clock_timestamp();
  perform app.action_lease_require(a, p_lease_id);
  if a.status = 'executing' and a.look_up_count = 0 and a.lease_expires_at > v_now then
    return jsonb_build_object('begun', true, 'action', app.action_record(a), 'leaseExpiresAt', a.lease_expires_at);
  end if;
  if a.status <> 'approved' or a.lease_expires_at is null or a.lease_expires_at <= v_now then
    perform app.fail(409, 'state_conflict', 'The lease of the action has ended',
      app.issue('leaseId', 'lease_taken', 'take it again when the action is due'));
  end if;

  v_reason := case
    when o.status = 'suspended' then 'suspended'
    when i.id is null or c.integration_id is null or i.connection_revision <> a.connection_revision
      or c.subject_hash is distinct from a.subject_hash then 'connection_replaced'
    when t.digest is distinct from a.tool_digest and t.enabled then 'tool_changed'
    when exists (
      select from app.action_files f
        where f.organization_id = p_organization_id and f.action_id = a.id and not p_files @> jsonb_build_array(jsonb_build_object(
          'argument', f.argument, 'sizeBytes', f.size_bytes, 'sha256', f.sha256))) then 'file_changed'
    else coalesce(app.action_unavailable(i, c, p, t, a.kind, o.constraints -> 'allowedIntegrations'), nullif(p_obstacle, 'connection')) end;
  if v_reason is not null then
    perform app.actions_cancel(p_organization_id, array[a.id], jsonb_build_object('code', v_reason,
      'message', 'It was not executed: what it needs is not as it was when it was proposed'));
  elsif a.decision is null and o.constraints -> 'approvalRequiredForRisk' ? a.risk then
    update app.actions
      set status = 'awaiting_approval', version = version + 1, requires_approval = true, due_at = null, lease_expires_at = null,
        expires_at = v_now + make_interval(days => p_approval_days), updated_at = v_now,
        reason = '{"code": "approval_required", "message": "Actions of its risk need an approval by now"}'
      where organization_id = p_organization_id and id = a.id
      returning * into a;
    perform app.action_item_open(a);
  elsif c.degraded_at is not null and c.check_due_at > v_now then
    update app.actions
      set lease_expires_at = null, due_at = least(c.check_due_at, v_now + interval '15 minutes'), updated_at = v_now
      where organization_id = p_organization_id and id = a.id;
  elsif p_obstacle is not null then
    update app.actions
      set lease_expires_at = null, due_at = v_now + interval '30 seconds', updated_at = v_now
      where organization_id = p_organization_id and id = a.id;
  else
    update app.actions
      set status = 'executing', version = version + 1, execution_started_at = v_now,
        lease_expires_at = v_now + make_interval(secs => p_seconds),
        due_at = v_now + make_interval(secs => p_seconds + timeout_ms / 1000.0), updated_at = v_now
      where organization_id = p_organization_id and id = a.id;
  end if;
  select * into a from app.actions where organization_id = p_organization_id and id = p_action_id;
  return jsonb_build_object('begun', a.status = 'executing', 'action', app.action_record(a), 'leaseExpiresAt', a.lease_expires_at);
end
$$;
