-- Settles the open tasks in phase verify after a change of a profile that may verify them; usually there are none. Running and
-- ready tasks stay as they are; that is checked under the lock of their root, since one may just be getting blocked.
-- Locks: (organization) → roots → … as task_settle.
create or replace function app.tasks_settle_verification(p_organization_id uuid)
  returns void
  language plpgsql
as $$
declare
  v_tasks uuid[];
  v_id uuid;
begin
  select coalesce(array_agg(id), '{}') into v_tasks from app.tasks
    where organization_id = p_organization_id and phase = 'verify'
      and status in ('pending', 'blocked', 'running', 'waiting');
  perform app.task_roots_lock(p_organization_id, v_tasks, true);
  foreach v_id in array v_tasks loop
    perform app.task_settle(p_organization_id, v_id);
  end loop;
end
$$;
