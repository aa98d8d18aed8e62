-- Run starting | running → failed; message pending → failed with p_error {code, message, retryable}. A turn is never run again:
-- the person sees the failure and decides what to do.
-- Called by run_fail, which has locked the request and checked the lease. Locks: (run request) → run → message. Returns
-- {status, chatId, messageId}.
create or replace function app.chat_turn_fail(
  r app.run_requests, p_body_hash text, p_error jsonb, p_report jsonb)
  returns jsonb
  language plpgsql
as $$
begin
  perform app.run_finish(r, 'failed', 'fail', p_body_hash, null, p_error, p_report);
  perform app.message_end(r.organization_id, r.message_id, 'failed', p_error);
  return jsonb_build_object('status', 'failed', 'chatId', r.chat_id, 'messageId', r.message_id);
end
$$;
