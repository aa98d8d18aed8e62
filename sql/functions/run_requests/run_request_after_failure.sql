-- started → queued with a backoff while the failure is retryable and attempts are left, else the request ends and its
-- task fails. The run is already over. Backoff: doubling from p_backoff_seconds, at most p_backoff_max_seconds, jittered
-- between half of it and all. The caller holds the roots and the request.
create or replace function app.run_request_after_failure(
  p_organization_id uuid, r app.run_requests, p_error jsonb, p_max_attempts integer, p_backoff_seconds integer,
  p_backoff_max_seconds integer)
  returns void
  language plpgsql
as $$
declare
  t app.tasks;
  v_limit integer;
  v_backoff double precision;
  v_stopped boolean;
begin
  select * into t from app.tasks where organization_id = p_organization_id and id = r.task_id;
  v_limit := least(p_max_attempts, coalesce((t.spec #>> '{budget,maxAttemptsPerPhase}')::integer, 3));
  if not (p_error ->> 'retryable')::boolean or r.attempt >= v_limit then
    update app.run_requests
      set state = 'finished', finished_at = clock_timestamp(), lease_secret_hash = null, lease_expires_at = null
      where organization_id = p_organization_id and id = r.id;
    perform app.task_fail(p_organization_id, t.id, p_error);
    return;
  end if;
  select stopped into v_stopped from app.dispatch where organization_id = p_organization_id and kind = r.kind;
  v_backoff := least(p_backoff_max_seconds, p_backoff_seconds * power(2, least(r.attempt, 30) - 1)) * (0.5 + random() / 2);
  update app.run_requests
    set state = 'queued', parked = v_stopped, due_at = clock_timestamp() + make_interval(secs => v_backoff),
      lease_secret_hash = null, lease_expires_at = null
    where organization_id = p_organization_id and id = r.id;
  update app.tasks set status = 'pending', active_run_id = null where organization_id = p_organization_id and id = t.id;
  -- The failed run may have used up the budget: then the request ends and a person is asked.
  perform app.task_settle(p_organization_id, t.id);
end
$$;
