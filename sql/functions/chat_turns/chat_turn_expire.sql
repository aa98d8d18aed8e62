-- Ends a started turn whose lease has ended: run starting | running → expired, run request started → finished, message pending
-- → failed. After a cancel: run request and message → cancelled.
-- Called by run_request_lease_end, with the request locked and the lease checked. Locks: (run request) → run → message. Returns
-- {outcome, chatId}.
create or replace function app.chat_turn_expire(r app.run_requests)
  returns jsonb
  language plpgsql
as $$
declare
  v_error jsonb := jsonb_build_object('code', 'run_lease_expired', 'message', 'The runtime stopped reporting', 'retryable', true);
  v_cancelled boolean := r.cancel_requested_at is not null;
begin
  update app.run_requests
    set state = case when v_cancelled then 'cancelled' else 'finished' end, finished_at = clock_timestamp(),
      lease_secret_hash = null, lease_expires_at = null
    where organization_id = r.organization_id and id = r.id;
  update app.runs
    set status = 'expired', finished_at = clock_timestamp(), updated_at = clock_timestamp(), error = v_error
    where organization_id = r.organization_id and id = r.run_id and status in ('starting', 'running');
  perform app.message_end(r.organization_id, r.message_id, 'failed', v_error);
  return jsonb_build_object('outcome', case when v_cancelled then 'cancelled' else 'expired' end, 'chatId', r.chat_id);
end
$$;
