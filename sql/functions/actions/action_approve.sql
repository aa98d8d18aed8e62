-- Action awaiting_approval → approved, by an owner; its item in the inbox → resolved. p_expected_version, p_arguments_sha256: what
-- the person has seen; null: not compared. Approved before, a repeat changes nothing. Past its time → expired, and refused.
-- Returns {action, seen}, as action_seen gives it.
-- Locks: root → action → inbox item.
-- Codes: 401 agent_unauthorized, 403 forbidden, 404 organization_not_found | action_not_found, 409 state_conflict (stale, differs,
-- decided, expired).
create or replace function app.action_approve(
  p_organization_id uuid, p_action_id uuid, p_expected_version integer, p_arguments_sha256 text, p_note text, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_by constant text := app.action_decider_require(p_organization_id, p_actor);
  a app.actions := app.action_lock(p_organization_id, p_action_id, true);
  v_seen constant jsonb := app.action_seen(a);
begin
  if p_arguments_sha256 <> a.arguments_sha256 then
    perform app.fail(409, 'state_conflict', 'The action has other arguments',
      app.issue('argumentsSha256', 'differs', 'read the action again'));
  end if;
  if a.decision = 'approved' then
    return v_seen || jsonb_build_object('action', app.action_record(a));
  end if;
  perform app.action_state_require(a, 'awaiting_approval');
  if p_expected_version <> a.version then
    perform app.fail(409, 'state_conflict', format('The action is at version %s', a.version),
      app.issue('expectedVersion', 'stale', format('the action is at version %s', a.version)));
  end if;
  if a.expires_at <= clock_timestamp() then
    return v_seen || app.action_expire(a);
  end if;
  update app.actions
    set status = 'approved', version = version + 1, decision = 'approved', decided_by = v_by, decision_note = p_note,
      decided_at = clock_timestamp(), reason = null, due_at = clock_timestamp(), updated_at = clock_timestamp()
    where organization_id = p_organization_id and id = a.id
    returning * into a;
  perform app.action_end(a, 'resolved');
  return v_seen || jsonb_build_object('action', app.action_record(a));
end
$$;
