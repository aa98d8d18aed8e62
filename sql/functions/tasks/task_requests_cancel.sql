-- Ends the live run requests of tasks, with their claims and runs: run request queued | published | leased → cancelled; of a
-- started one the run → cancelled, and the request keeps its capacity until the worker reports or the lease ends.
-- The caller has locked the roots and changes the tasks. Locks: (roots) → run requests → runs → (commit) dispatch.
create or replace function app.task_requests_cancel(p_organization_id uuid, p_task_ids uuid[])
  returns void
  language plpgsql
as $$
begin
  update app.run_requests
    set state = 'cancelled', finished_at = clock_timestamp(), parked = false,
      lease_secret_hash = null, lease_expires_at = null
    where organization_id = p_organization_id and task_id = any (p_task_ids)
      and state in ('queued', 'published', 'leased');
  update app.run_requests
    set cancel_requested_at = clock_timestamp()
    where organization_id = p_organization_id and task_id = any (p_task_ids)
      and state = 'started' and cancel_requested_at is null;
  if found then
    update app.runs
      set status = 'cancelled', finished_at = clock_timestamp(), updated_at = clock_timestamp()
      where organization_id = p_organization_id and task_id = any (p_task_ids) and status in ('starting', 'running');
  end if;
end
$$;
