-- Cancels what awaits or has an approval of tasks that were cancelled or have failed. What is executed goes on, and what is unknown
-- still has to be found out. The caller has locked the roots.
create or replace function app.actions_cancel_of_tasks(p_organization_id uuid, p_task_ids uuid[])
  returns void
  language sql
as $$
  select app.actions_cancel(p_organization_id, array(
      select a.id from app.actions a
        where a.organization_id = p_organization_id and a.task_id = any (p_task_ids) and a.status in ('awaiting_approval', 'approved')),
    '{"code": "task_ended", "message": "Its task was cancelled, or has failed"}')
$$;
