-- leased, past its deadline → published (nothing is counted: nobody started it).
-- started, past its deadline → the run is expired, and the request goes on as after a retryable failure; a cancelled one ends.
-- A started chat turn is not run again: see chat_turn_expire.
-- Called by the dispatch job; judged again under the lock, so calling it early or twice changes nothing. p_force: an
-- administrator ends the lease before its deadline (admin_lease_expire).
-- Locks: roots → run request → run → (commit) dispatch. Returns {outcome: kept | republished | expired | cancelled}.
create or replace function app.run_request_expire(
  p_organization_id uuid, p_run_request_id uuid, p_max_attempts integer, p_backoff_seconds integer,
  p_backoff_max_seconds integer, p_force boolean default false)
  returns jsonb
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  r app.run_requests;
  v_task_id uuid;
begin
  select task_id into v_task_id from app.run_requests
    where organization_id = p_organization_id and id = p_run_request_id;
  if v_task_id is not null then
    perform app.task_roots_lock(p_organization_id, array[v_task_id], true);
  end if;
  select * into r from app.run_requests
    where organization_id = p_organization_id and id = p_run_request_id for no key update;
  if not found or r.state not in ('leased', 'started') or r.lease_expires_at > clock_timestamp() and not p_force then
    return '{"outcome": "kept"}';
  end if;
  if r.state = 'leased' then
    update app.run_requests
      set state = 'published', lease_secret_hash = null, lease_expires_at = null
      where organization_id = p_organization_id and id = r.id;
    return '{"outcome": "republished"}';
  end if;
  if r.kind = 'chat' then
    return app.chat_turn_expire(r);
  end if;
  if r.cancel_requested_at is not null then
    update app.run_requests
      set state = 'cancelled', finished_at = clock_timestamp(), lease_secret_hash = null, lease_expires_at = null
      where organization_id = p_organization_id and id = r.id;
    return '{"outcome": "cancelled"}';
  end if;
  update app.runs
    set status = 'expired', finished_at = clock_timestamp(), updated_at = clock_timestamp(),
      error = jsonb_build_object('code', 'run_lease_expired', 'message', 'The worker stopped reporting', 'retryable', true)
    where organization_id = p_organization_id and id = r.run_id;
  perform app.run_request_after_failure(p_organization_id, r,
    jsonb_build_object('code', 'run_lease_expired', 'message', 'The worker stopped reporting', 'retryable', true),
    p_max_attempts, p_backoff_seconds, p_backoff_max_seconds);
  return '{"outcome": "expired"}';
end
$$;

alter function app.run_request_expire owner to runner_scoped;
revoke all on function app.run_request_expire from public;
grant execute on function app.run_request_expire to runner_jobs;
