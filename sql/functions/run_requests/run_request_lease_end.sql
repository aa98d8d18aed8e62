-- Run request leased → published; no attempt is counted. Run request started → the run expires, and the request is retried or
-- ends as after a retryable failure; after a cancel → cancelled. A chat turn is never run again (chat_turn_expire).
-- Called by run_request_expire and admin_lease_expire, which have locked roots and request and checked the lease.
-- Locks: (roots, run request) → run → (commit) dispatch. Returns {outcome: republished | expired | cancelled, and chatId for a
-- chat turn}.
create or replace function app.run_request_lease_end(
  r app.run_requests, p_max_attempts integer, p_backoff_seconds integer, p_backoff_max_seconds integer)
  returns jsonb
  language plpgsql
as $$
declare
  v_error jsonb := jsonb_build_object('code', 'run_lease_expired', 'message', 'The worker stopped reporting', 'retryable', true);
begin
  if r.state = 'leased' then
    update app.run_requests
      set state = 'published', lease_secret_hash = null, lease_expires_at = null
      where organization_id = r.organization_id and id = r.id;
    return '{"outcome": "republished"}';
  end if;
  if r.kind = 'chat' then
    return app.chat_turn_expire(r);
  end if;
  if r.cancel_requested_at is not null then
    update app.run_requests
      set state = 'cancelled', finished_at = clock_timestamp(), lease_secret_hash = null, lease_expires_at = null
      where organization_id = r.organization_id and id = r.id;
    return '{"outcome": "cancelled"}';
  end if;
  update app.runs
    set status = 'expired', finished_at = clock_timestamp(), updated_at = clock_timestamp(), error = v_error
    where organization_id = r.organization_id and id = r.run_id;
  perform app.run_request_retry_or_fail(r, v_error, p_max_attempts, p_backoff_seconds, p_backoff_max_seconds);
  return '{"outcome": "expired"}';
end
$$;
