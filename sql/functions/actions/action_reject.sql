-- Action awaiting_approval → rejected, by an owner; its item in the inbox → resolved. Rejected before, a repeat changes nothing. Past
-- its time → expired, and refused. Returns {action, seen}, as action_seen gives it.
-- Locks: root → action → inbox item → … as task_settle.
-- Codes: 401 agent_unauthorized, 403 forbidden, 404 organization_not_found | action_not_found, 409 state_conflict (decided,
-- expired).
create or replace function app.action_reject(p_organization_id uuid, p_action_id uuid, p_reason text, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_by constant text := app.action_decider_require(p_organization_id, p_actor);
  a app.actions := app.action_lock(p_organization_id, p_action_id, true);
  v_seen constant jsonb := app.action_seen(a);
begin
  if a.status = 'rejected' then
    return v_seen || jsonb_build_object('action', app.action_record(a));
  end if;
  perform app.action_state_require(a, 'awaiting_approval');
  if a.expires_at <= clock_timestamp() then
    return v_seen || app.action_expire(a);
  end if;
  update app.actions
    set status = 'rejected', version = version + 1, decision = 'rejected', decided_by = v_by, decision_note = p_reason,
      decided_at = clock_timestamp(), reason = null, updated_at = clock_timestamp()
    where organization_id = p_organization_id and id = a.id
    returning * into a;
  perform app.action_end(a, 'resolved');
  return v_seen || jsonb_build_object('action', app.action_record(a));
end
$$;
