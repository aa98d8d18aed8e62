-- Action unknown → succeeded | failed | not_executed, as a person has found out; its item in the inbox → resolved. Final: another
-- attempt is a new proposal. The same outcome again changes nothing.
-- Returns {action, seen}, as action_seen gives it.
-- Locks: root → action → inbox item → … as task_settle.
-- Codes: 401 agent_unauthorized, 403 forbidden, 404 organization_not_found | action_not_found, 409 state_conflict (decided,
-- expired).
create or replace function app.action_reconcile(
  p_organization_id uuid, p_action_id uuid, p_outcome text, p_note text, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_by constant text := app.action_decider_require(p_organization_id, p_actor);
  a app.actions := app.action_lock(p_organization_id, p_action_id, true);
  v_seen constant jsonb := app.action_seen(a);
begin
  if a.reconciliation = p_outcome then
    return v_seen || jsonb_build_object('action', app.action_record(a));
  end if;
  perform app.action_state_require(a, 'unknown');
  update app.actions
    set status = p_outcome, version = version + 1, reconciliation = p_outcome, reconciliation_note = p_note, reconciled_by = v_by,
      reconciled_at = clock_timestamp(), updated_at = clock_timestamp()
    where organization_id = p_organization_id and id = a.id
    returning * into a;
  perform app.action_end(a, 'resolved');
  return v_seen || jsonb_build_object('action', app.action_record(a));
end
$$;
