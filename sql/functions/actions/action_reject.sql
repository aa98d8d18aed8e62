-- Action awaiting_approval → rejected, by an owner; its item in the inbox → resolved. Rejected before, a repeat changes nothing. Past
-- its time → expired, and refused. Returns {action, seen: {version, argumentsSha256}}. seen: what the decision is about.
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
  v_seen jsonb;
  a app.actions := app.action_lock(p_organization_id, p_action_id, true);
begin
  v_seen := jsonb_build_object('version', a.version, 'argumentsSha256', a.arguments_sha256);
  if a.status = 'rejected' then
    return jsonb_build_object('action', app.action_record(a), 'seen', v_seen);
  end if;
  if a.status <> 'awaiting_approval' then
    perform app.fail(409, 'state_conflict', format('The action is %s', a.status),
      app.issue('actionId', 'decided', format('is %s', a.status)));
  end if;
  if a.expires_at <= clock_timestamp() then
    perform app.action_expire(a);
    return app.problem(409, 'state_conflict', 'The action has expired', app.issue('actionId', 'expired', 'propose it again'))
      || jsonb_build_object('seen', v_seen);
  end if;
  update app.actions
    set status = 'rejected', version = version + 1, decision = 'rejected', decided_by = v_by, decision_note = p_reason,
      decided_at = clock_timestamp(), reason = null, updated_at = clock_timestamp()
    where organization_id = p_organization_id and id = a.id
    returning * into a;
  perform app.action_end(a, 'resolved');
  return jsonb_build_object('action', app.action_record(a), 'seen', v_seen);
end
$$;
