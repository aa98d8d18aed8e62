-- Locks the roots that the end of the run can reach; the first lock of run_complete. Returns the root if it is the only one: it
-- usually is the task itself, which then need not be read again. Otherwise returns no row.
create or replace function app.run_roots_lock(p_organization_id uuid, p_run_id uuid)
  returns app.tasks
  language plpgsql
as $$
declare
  t app.tasks;
begin
  -- Most hierarchies have no edge to another one, and only a planning run touches other hierarchies.
  select root.* into t from app.tasks root
    where root.organization_id = p_organization_id
      and root.id = (select k.root_task_id from app.runs u
        join app.tasks k on k.organization_id = u.organization_id and k.id = u.task_id
        where u.organization_id = p_organization_id and u.id = p_run_id and u.mode <> 'plan')
      and not exists (select 1 from app.task_dependencies d
        where d.organization_id = p_organization_id and d.depends_on_root_task_id = root.id
          and d.root_task_id <> d.depends_on_root_task_id)
    for no key update;
  if not found then
    perform app.task_roots_lock(p_organization_id, array(
      select unnest(case mode when 'plan' then app.run_task_ids(organization_id, id, task_id) else array[task_id] end)
        from app.runs where organization_id = p_organization_id and id = p_run_id and task_id is not null), true);
  elsif exists (select 1 from app.task_dependencies d
      where d.organization_id = p_organization_id and d.depends_on_root_task_id = t.id
        and d.root_task_id <> d.depends_on_root_task_id) then
    raise exception using errcode = '40001', message = 'the hierarchies to lock changed meanwhile';
  end if;
  return t;
end
$$;
