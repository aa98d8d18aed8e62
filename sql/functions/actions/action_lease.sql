-- Gives a job the lease of an action that is due: to prepare the execution of an approved one, or to look up what became of one that
-- was begun and got no response. Until the lease ends the action is not due, then it is anybody's. A repeat by the holder returns the same.
-- p_seconds: of the lease; p_push_seconds: that of a push, which takes longer to prepare. Before an execution the files are read again,
-- which takes as long as a storage needs that reads p_file_bytes_per_second: the lease has so much more.
-- Looking up begins with the first lease for it and goes on for p_look_up_seconds; jobs that die at it end it after ten times. A
-- connection that is gone or another one shows nothing: executing → unknown.
-- p_approval_days: how long an action may be put off after its approval, or after its proposal where it needs none: approved → cancelled
-- (overdue). It is tried once however old it is, so that jobs that stood still lose nothing.
-- Returns {leased, purpose: execute | look_up, action, toolDigest (of the tool that it was proposed by), storageKeys: {argument: key},
-- connectionRevision, leaseSeconds (of a new one), leaseExpiresAt}; leased false: there is nothing to do (any more), with the action alone.
-- Locks: root → action → inbox item → … as task_settle. Codes: 404 organization_not_found | action_not_found.
create or replace function app.action_lease(
  p_organization_id uuid, p_action_id uuid, p_lease_id uuid, p_seconds integer, p_push_seconds integer, p_look_up_seconds integer,
  p_approval_days integer, p_file_bytes_per_second integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_now timestamptz;
  v_seconds integer;
  a app.actions := app.action_lock(p_organization_id, p_action_id, true);
begin
  v_now := clock_timestamp();
  v_seconds := case a.kind when 'git_push' then p_push_seconds else p_seconds end + case a.status when 'approved' then (
    select coalesce(ceil(sum(f.size_bytes) / p_file_bytes_per_second), 0) from app.action_files f
      where f.organization_id = p_organization_id and f.action_id = a.id) else 0 end;
  if a.due_at is null or (a.lease_id is distinct from p_lease_id or a.lease_expires_at is null or a.lease_expires_at <= v_now)
      and a.due_at > v_now then
    return jsonb_build_object('leased', false, 'action', app.action_record(a));
  end if;
  if a.lease_id is distinct from p_lease_id or a.lease_expires_at is null or a.lease_expires_at <= v_now then
    if a.status = 'executing' and (a.look_up_count >= 10 and a.look_up_until <= v_now or not exists (
        select from app.integrations i
          join app.integration_connections c on c.organization_id = i.organization_id and c.integration_id = i.id
          where i.organization_id = p_organization_id and i.id = a.integration_id
            and i.connection_revision = a.connection_revision)) then
      a := app.action_unknown(a);
      return jsonb_build_object('leased', false, 'action', app.action_record(a));
    elsif a.status = 'approved' and a.execution_attempts > 0
        and coalesce(a.decided_at, a.created_at) <= v_now - make_interval(days => p_approval_days) then
      perform app.actions_cancel(p_organization_id, array[a.id],
        '{"code": "overdue", "message": "It was put off again and again, until its time was over"}');
      select * into a from app.actions where organization_id = p_organization_id and id = p_action_id;
      return jsonb_build_object('leased', false, 'action', app.action_record(a));
    end if;
    update app.actions
      set lease_id = p_lease_id, lease_expires_at = v_now + make_interval(secs => v_seconds),
        due_at = v_now + make_interval(secs => v_seconds),
        execution_attempts = execution_attempts + (status = 'approved')::integer,
        look_up_count = look_up_count + (status = 'executing')::integer,
        look_up_until = case when status = 'executing' then coalesce(look_up_until, v_now + make_interval(secs => p_look_up_seconds)) end,
        updated_at = v_now
      where organization_id = p_organization_id and id = a.id
      returning * into a;
  end if;
  return jsonb_build_object('leased', true, 'purpose', case a.status when 'approved' then 'execute' else 'look_up' end,
    'action', app.action_record(a), 'toolDigest', a.tool_digest, 'connectionRevision', a.connection_revision,
    'leaseSeconds', v_seconds, 'leaseExpiresAt', a.lease_expires_at,
    'storageKeys', (select coalesce(jsonb_object_agg(f.argument, f.storage_key), '{}') from app.action_files f
      where f.organization_id = p_organization_id and f.action_id = a.id));
end
$$;
