-- Run request leased → started; run (none) → starting. Called by run_start, which has locked the request and checked token and
-- capacity. The profile is enabled: disabling it ends its turns under this lock.
-- Codes: 409 run_lease_expired with differs.
create or replace function app.chat_turn_start(
  r app.run_requests, p_run_id uuid, p_worker_id text, p_lease_seconds integer, p_execution_token text)
  returns jsonb
  language plpgsql
as $$
begin
  update app.run_requests
    set state = 'started', attempt = attempt + 1, run_id = p_run_id, worker_id = p_worker_id,
      execution_token_hash = encode(sha256(convert_to(p_execution_token, 'UTF8')), 'hex'),
      lease_expires_at = clock_timestamp() + make_interval(secs => p_lease_seconds)
    where organization_id = r.organization_id and id = r.id
    returning * into r;
  insert into app.runs (organization_id, id, kind, chat_id, message_id, run_request_id, agent_profile_id, attempt, mode,
      status, fence, lease_secret_hash, worker_id)
    values (r.organization_id, p_run_id, 'chat', r.chat_id, r.message_id, r.id, r.agent_profile_id, r.attempt, r.mode,
      'starting', r.fence, r.lease_secret_hash, p_worker_id)
    on conflict on constraint runs_pkey do nothing;
  if not found then
    -- The run of another request has this id.
    perform app.lease_refuse('differs');
  end if;
  return app.run_start_response(r, p_execution_token);
end
$$;
