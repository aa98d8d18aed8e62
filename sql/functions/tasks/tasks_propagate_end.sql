-- Settles the dependents and parents of tasks that have ended (completed, failed or cancelled). Dependents of a task that did
-- not complete stay blocked, and a person is notified once. Items about actions follow their actions. The caller has locked the
-- roots.
create or replace function app.tasks_propagate_end(p_organization_id uuid, p_task_ids uuid[])
  returns void
  language plpgsql
as $$
declare
  v_id uuid;
begin
  -- Most tasks have neither: one statement tells.
  if not exists (select 1 from app.human_inbox_items i
      where i.organization_id = p_organization_id and i.task_id = any (p_task_ids) and i.status = 'open')
     and not exists (select 1 from app.task_dependencies d
      where d.organization_id = p_organization_id and d.depends_on_task_id = any (p_task_ids) and d.required)
     and not exists (select 1 from app.tasks t
      where t.organization_id = p_organization_id and t.id = any (p_task_ids) and t.parent_id is not null) then
    return;
  end if;
  update app.human_inbox_items i
    set status = 'cancelled', updated_at = clock_timestamp()
    where i.organization_id = p_organization_id and i.task_id = any (p_task_ids) and i.status = 'open'
      and i.action_id is null;
  perform app.prerequisite_notify(p_organization_id, p_task_ids);
  for v_id in
    -- Only tasks that task_settle would change, which are few if a whole hierarchy ends. In the order in which they were
    -- created (of one plan: tasks before initiatives), which becomes that of their requests.
    select w.id from app.tasks w
      where w.organization_id = p_organization_id and w.status in ('pending', 'blocked', 'waiting')
        and w.id in (
          select d.task_id from app.task_dependencies d
            where d.organization_id = p_organization_id and d.depends_on_task_id = any (p_task_ids) and d.required
          union
          select t.parent_id from app.tasks t
            where t.organization_id = p_organization_id and t.id = any (p_task_ids) and t.parent_id is not null)
      order by w.created_at, w.kind desc, w.identifier_number
  loop
    perform app.task_settle(p_organization_id, v_id);
  end loop;
end
$$;
