-- Settles what is open in phase verify: a profile came, or changed, that may verify it. Mostly there is none. What runs or is
-- ready is left alone by that, if it is still so under its root's lock: it may be becoming blocked just now.
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
