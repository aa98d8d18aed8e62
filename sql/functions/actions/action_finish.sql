-- Action executing → succeeded | failed, by the provider's response or by a look-up. p_outcome: {outcome: succeeded | found,
-- result} | {outcome: failed, error} | {outcome: absent}, of a look-up where reads are strong: it was not applied | {outcome: none}, of
-- an inconclusive look-up: it goes on with growing pauses, and after look_up_until, or with final: true → unknown, with an item in the
-- inbox.
-- A repeat by the holder of the lease changes nothing. Returns {action}.
-- Locks: root → action → inbox item → … as task_settle.
-- Codes: 404 organization_not_found | action_not_found, 409 state_conflict (lease_taken).
create or replace function app.action_finish(p_organization_id uuid, p_action_id uuid, p_lease_id uuid, p_outcome jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_outcome constant text := p_outcome ->> 'outcome';
  v_now timestamptz;
  a app.actions := app.action_lock(p_organization_id, p_action_id, true);
begin
  v_now := clock_timestamp();
  perform app.action_lease_require(a, p_lease_id);
  -- A look-up that has reported its result holds no lease.
  if a.status <> 'executing' or a.lease_expires_at is null then
    return jsonb_build_object('action', app.action_record(a));
  end if;
  if (v_outcome in ('found', 'absent', 'none')) <> (a.look_up_count > 0) then
    raise exception 'outcome % does not go with % look-ups', v_outcome, a.look_up_count;
  elsif v_outcome = 'none' and (a.look_up_until <= v_now or (p_outcome ->> 'final')::boolean) then
    a := app.action_unknown(a);
  elsif v_outcome = 'none' then
    update app.actions
      set lease_expires_at = null, updated_at = v_now,
        due_at = least(v_now + make_interval(secs => least(60, 5 * 2 ^ (a.look_up_count - 1))), a.look_up_until)
      where organization_id = p_organization_id and id = a.id
      returning * into a;
  else
    update app.actions
      set status = case when v_outcome in ('succeeded', 'found') then 'succeeded' else 'failed' end, version = version + 1,
        result = case when v_outcome in ('succeeded', 'found') then p_outcome -> 'result' end,
        error = case v_outcome when 'failed' then p_outcome -> 'error'
          when 'absent' then '{"code": "not_applied", "message": "The provider shows that it was not applied"}' end,
        execution_finished_at = v_now, due_at = null, lease_expires_at = null, updated_at = v_now
      where organization_id = p_organization_id and id = a.id
      returning * into a;
    perform app.action_end(a, 'cancelled');
  end if;
  return jsonb_build_object('action', app.action_record(a));
end
$$;
