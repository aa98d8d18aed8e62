-- Run request started → queued after a retryable failure while attempts are left; task running → pending. Otherwise run request
-- started → finished, and the task fails (task_fail).
-- The backoff doubles from p_backoff_seconds up to p_backoff_max_seconds, with a jitter between half of it and all of it.
-- The run has already ended, and the caller has locked roots and request.
create or replace function app.run_request_retry_or_fail(
  r app.run_requests, p_error jsonb, p_max_attempts integer, p_backoff_seconds integer, p_backoff_max_seconds integer)
  returns void
  language plpgsql
as $$
declare
  v_attempts integer;
  v_stopped boolean;
  v_backoff double precision;
begin
  select least(p_max_attempts, coalesce((spec #>> '{budget,maxAttemptsPerPhase}')::integer, 3)) into v_attempts
    from app.tasks where organization_id = r.organization_id and id = r.task_id;
  if not (p_error ->> 'retryable')::boolean or r.attempt >= v_attempts then
    update app.run_requests
      set state = 'finished', finished_at = clock_timestamp(), lease_secret_hash = null, lease_expires_at = null
      where organization_id = r.organization_id and id = r.id;
    perform app.task_fail(r.organization_id, r.task_id, p_error);
    return;
  end if;
  select stopped into v_stopped from app.dispatch where organization_id = r.organization_id and kind = r.kind;
  v_backoff := least(p_backoff_max_seconds, p_backoff_seconds * power(2, least(r.attempt, 30) - 1)) * (0.5 + random() / 2);
  update app.run_requests
    set state = 'queued', parked = v_stopped, due_at = clock_timestamp() + make_interval(secs => v_backoff),
      lease_secret_hash = null, lease_expires_at = null
    where organization_id = r.organization_id and id = r.id;
  update app.tasks set status = 'pending', active_run_id = null where organization_id = r.organization_id and id = r.task_id;
  -- The failed run may have used up the budget: then settling ends the request and asks a person.
  perform app.task_settle(r.organization_id, r.task_id);
end
$$;
