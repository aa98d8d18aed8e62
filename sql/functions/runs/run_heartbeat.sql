-- Renews the lease by p_lease_seconds from now. After a cancel it returns the status cancelling and renews the lease up to
-- p_cancel_grace_seconds after the request: time to stop and to report usage, after which the request loses its capacity.
-- Writes one row and does not wait for the disk: if a crash undoes the renewal, the lease ends earlier, never later.
-- Locks: run request. Codes: 409 run_lease_expired with lease_lost.
create or replace function app.run_heartbeat(
  p_organization_id uuid, p_run_id uuid, p_lease_token text, p_lease_seconds integer,
  p_cancel_grace_seconds integer default 300)
  returns jsonb
  language plpgsql security definer
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_asynchronous constant text := set_config('synchronous_commit', 'off', true);
  r app.run_requests;
  v_status text;
  v_until timestamptz;
begin
  r := app.run_request_lock(p_organization_id, p_run_id);
  if r.run_id is distinct from p_run_id or r.state <> 'started' or not app.lease_is_current(r, p_lease_token) then
    perform app.lease_refuse('lease_lost');
  end if;
  v_until := clock_timestamp() + make_interval(secs => p_lease_seconds);
  if r.cancel_requested_at is not null then
    v_until := least(v_until, r.cancel_requested_at + make_interval(secs => p_cancel_grace_seconds));
    if v_until > r.lease_expires_at then
      update app.run_requests set lease_expires_at = v_until where organization_id = p_organization_id and id = r.id;
    end if;
    return '{"status": "cancelling"}';
  end if;
  update app.run_requests
    set lease_expires_at = v_until
    where organization_id = p_organization_id and id = r.id
    returning (select u.status from app.runs u where u.organization_id = p_organization_id and u.id = p_run_id)
      into v_status;
  return jsonb_build_object('status', v_status);
end
$$;
