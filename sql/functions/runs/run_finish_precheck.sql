-- The checks that run_complete and run_fail share. A repeat returns the status of the first call. After a cancel, the run gets
-- its report, and its request goes started → cancelled.
-- Returns {status, …}, or null if the run may finish. p_call: complete | fail. The caller has locked the request.
-- Codes: 409 run_lease_expired with lease_lost | differs.
create or replace function app.run_finish_precheck(
  r app.run_requests, p_run_id uuid, p_lease_token text, p_call text, p_body_hash text, p_report jsonb)
  returns jsonb
  language plpgsql
as $$
declare
  v_run app.runs;
begin
  select * into v_run from app.runs where organization_id = r.organization_id and id = p_run_id;
  if v_run.finish_call is not null
     and p_lease_token = v_run.fence::text || '.' || split_part(p_lease_token, '.', 2)
     and v_run.lease_secret_hash = sha256(convert_to(split_part(p_lease_token, '.', 2), 'UTF8')) then
    if v_run.finish_call <> p_call or v_run.finish_hash <> p_body_hash then
      perform app.lease_refuse('differs');
    end if;
    return jsonb_build_object('status', v_run.status);
  end if;
  if r.run_id is distinct from p_run_id or r.state <> 'started' or not app.lease_is_current(r, p_lease_token) then
    perform app.lease_refuse('lease_lost');
  end if;
  if r.cancel_requested_at is null then
    return null;
  end if;
  perform app.run_finish(r, 'cancelled', p_call, p_body_hash, null, null, p_report, 'cancelled');
  if r.kind = 'chat' then
    perform app.message_end(r.organization_id, r.message_id, 'cancelled', null);
    return jsonb_build_object('status', 'cancelled', 'chatId', r.chat_id, 'messageId', r.message_id);
  end if;
  return '{"status": "cancelled"}';
end
$$;
