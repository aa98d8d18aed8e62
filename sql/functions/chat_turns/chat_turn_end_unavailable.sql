-- Ends a turn that no worker will finish: message pending → failed with runtime_unavailable. Not started: run request published
-- | leased → cancelled. Started: run starting | running → cancelled; the request keeps its capacity until the worker reports or
-- the lease ends.
-- The caller has locked the request. Locks: (run request) → run → message.
create or replace function app.chat_turn_end_unavailable(r app.run_requests)
  returns void
  language plpgsql
as $$
begin
  if r.state = 'started' then
    update app.run_requests set cancel_requested_at = coalesce(cancel_requested_at, clock_timestamp())
      where organization_id = r.organization_id and id = r.id;
    update app.runs
      set status = 'cancelled', finished_at = clock_timestamp(), updated_at = clock_timestamp()
      where organization_id = r.organization_id and id = r.run_id and status in ('starting', 'running');
  else
    update app.run_requests
      set state = 'cancelled', finished_at = clock_timestamp(), lease_secret_hash = null, lease_expires_at = null
      where organization_id = r.organization_id and id = r.id;
  end if;
  perform app.message_end(r.organization_id, r.message_id, 'failed', jsonb_build_object(
    'code', 'runtime_unavailable', 'message', 'No runtime could reply', 'retryable', true));
end
$$;
