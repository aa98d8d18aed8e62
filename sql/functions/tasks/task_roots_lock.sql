-- Locks the roots of the given tasks: the first lock of every transition of a task. With p_ending, also locks the roots of the
-- hierarchies that the end of these tasks can reach. Locks in the order of ids.
-- The roots are found without a lock and compared afterwards. An edge added in between may lead to another root: then it raises
-- 40001, and the whole call is retried.
create or replace function app.task_roots_lock(p_organization_id uuid, p_task_ids uuid[], p_ending boolean)
  returns void
  language plpgsql
  -- The planner expects most edges to leave their hierarchy, and would read the edges of all organizations.
  set enable_seqscan = off
as $$
declare
  v_own uuid[];
  v_roots uuid[];
  v_leaves boolean;
begin
  -- Most hierarchies have no edge that leaves them: one index lookup tells.
  select array_agg(t.root_task_id), bool_or(p_ending and exists (select 1 from app.task_dependencies d
      where d.organization_id = p_organization_id and d.depends_on_root_task_id = t.root_task_id
        and d.root_task_id <> d.depends_on_root_task_id))
    into v_own, v_leaves
    from app.tasks t
    where t.organization_id = p_organization_id and t.id = any (p_task_ids);
  if v_own is null then
    return;
  end if;
  v_roots := case when v_leaves then app.task_roots_reached(p_organization_id, v_own) else v_own end;
  perform 1 from app.tasks where organization_id = p_organization_id and id = any (v_roots)
    order by id for no key update;
  if not p_ending then
    return;
  end if;
  if v_leaves or exists (select 1 from app.task_dependencies d
      where d.organization_id = p_organization_id and d.depends_on_root_task_id = any (v_own)
        and d.root_task_id <> d.depends_on_root_task_id) then
    if not app.task_roots_reached(p_organization_id, v_own) <@ v_roots then
      raise exception using errcode = '40001', message = 'the hierarchies to lock changed meanwhile';
    end if;
  end if;
end
$$;
