-- Settles tasks whose time has come (waitingUntil, scheduledAt). Called by the dispatch job; does nothing at any other time.
-- Locks: roots → … as task_settle.
create or replace function app.tasks_wake(p_organization_id uuid, p_task_ids uuid[])
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_id uuid;
begin
  perform app.task_roots_lock(p_organization_id, p_task_ids, true);
  foreach v_id in array p_task_ids loop
    perform app.task_settle(p_organization_id, v_id);
  end loop;
  return jsonb_build_object('woken', cardinality(p_task_ids));
end
$$;
