-- Run request leased | started with an expired lease → see run_request_lease_end. Called by the dispatch job. The deadline is
-- checked under the lock, so an early or repeated call changes nothing.
-- Locks: roots → run request → … as run_request_lease_end.
-- Returns {outcome: unchanged | republished | expired | cancelled, and chatId for a chat turn}.
create or replace function app.run_request_expire(
  p_organization_id uuid, p_run_request_id uuid, p_max_attempts integer, p_backoff_seconds integer,
  p_backoff_max_seconds integer)
  returns jsonb
  language plpgsql security definer
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
  if not found or r.state not in ('leased', 'started') or r.lease_expires_at > clock_timestamp() then
    return '{"outcome": "unchanged"}';
  end if;
  return app.run_request_lease_end(r, p_max_attempts, p_backoff_seconds, p_backoff_max_seconds);
end
$$;
