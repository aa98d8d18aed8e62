-- Run starting | running → failed; run request started → queued with a backoff, or → finished and the task fails
-- (docs/interface.md 4.13.3). After a cancel only the report is stored, and the status is cancelled. A chat turn ends with its
-- run (chat_turn_fail).
-- p_report: {usage, harness, logState}. A repeat returns the status of the first call. Returns {status, and for a chat turn
-- chatId, messageId}.
-- Locks: roots → run request → run → (commit) dispatch. Codes: 409 run_lease_expired with lease_lost | differs.
create or replace function app.run_fail(
  p_organization_id uuid, p_run_id uuid, p_lease_token text, p_body_hash text, p_error jsonb, p_report jsonb,
  p_max_attempts integer, p_backoff_seconds integer, p_backoff_max_seconds integer)
  returns jsonb
  language plpgsql security definer
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  r app.run_requests;
  v_ended jsonb;
begin
  perform app.task_roots_lock(p_organization_id, array(
    select task_id from app.runs where organization_id = p_organization_id and id = p_run_id and task_id is not null), true);
  r := app.run_request_lock(p_organization_id, p_run_id);
  v_ended := app.run_finish_precheck(r, p_run_id, p_lease_token, 'fail', p_body_hash, p_report);
  if v_ended is not null then
    return v_ended;
  end if;
  if r.kind = 'chat' then
    return app.chat_turn_fail(r, p_body_hash, p_error, p_report);
  end if;
  perform app.run_finish(r, 'failed', 'fail', p_body_hash, null, p_error, p_report, null);
  perform app.run_request_retry_or_fail(r, p_error, p_max_attempts, p_backoff_seconds, p_backoff_max_seconds);
  return '{"status": "failed"}';
end
$$;
