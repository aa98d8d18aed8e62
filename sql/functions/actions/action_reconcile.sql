-- Action unknown → succeeded | failed | not_executed, as a person has found out; its item in the inbox → resolved. Final: another
-- attempt is a new proposal. The same outcome again changes nothing.
-- Returns {action, seen: {version, argumentsSha256}}. seen: what the decision is about, for its entry in the audit log.
-- Locks: root → action → inbox item → … as task_settle.
-- Codes: 401 agent_unauthorized, 403 forbidden, 404 organization_not_found | action_not_found, 409 state_conflict (decided).
create or replace function app.action_reconcile(
  p_organization_id uuid, p_action_id uuid, p_outcome text, p_note text, p_actor jsonb)
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
  if a.reconciliation = p_outcome then
    return jsonb_build_object('action', app.action_record(a), 'seen', v_seen);
  end if;
  if a.status <> 'unknown' then
    perform app.fail(409, 'state_conflict', format('The action is %s', a.status),
      app.issue('actionId', 'decided', format('is %s', a.status)));
  end if;
  update app.actions
    set status = p_outcome, version = version + 1, reconciliation = p_outcome, reconciliation_note = p_note, reconciled_by = v_by,
      reconciled_at = clock_timestamp(), updated_at = clock_timestamp()
    where organization_id = p_organization_id and id = a.id
    returning * into a;
  perform app.action_end(a, 'resolved');
  return jsonb_build_object('action', app.action_record(a), 'seen', v_seen);
end
$$;
