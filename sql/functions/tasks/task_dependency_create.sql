-- Adds an edge to an open task that is not running. If the prerequisite is not completed: task → blocked, and its claim and run
-- request end. A repeat returns the existing edge.
-- Locks: roots of both tasks → edges → run request → (commit) dispatch.
-- Codes: 401 agent_unauthorized, 404 organization_not_found | task_not_found, 409 state_conflict.
create or replace function app.task_dependency_create(
  p_organization_id uuid, p_task_ref text, p_depends_on text, p_required boolean, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_task_id uuid;
  v_depends_on uuid;
  t app.tasks;
  d app.task_dependencies;
begin
  v_task_id := app.task_find(p_organization_id, p_task_ref);
  v_depends_on := app.task_find(p_organization_id, p_depends_on);
  perform app.task_roots_lock(p_organization_id, array[v_task_id, v_depends_on], false);
  perform app.actor_require(p_organization_id, p_actor, v_task_id);
  if v_task_id is null then
    perform app.fail(404, 'task_not_found', 'Task not found');
  end if;
  if v_depends_on is null then
    perform app.fail(404, 'task_not_found', 'Prerequisite not found', app.issue('dependsOn', 'not_found', 'no such task'));
  end if;
  if v_task_id = v_depends_on then
    perform app.fail(409, 'state_conflict', 'A task cannot wait for itself',
      app.issue('dependsOn', 'cycle', 'is the task itself'));
  end if;
  select * into d from app.task_dependencies
    where organization_id = p_organization_id and task_id = v_task_id and depends_on_task_id = v_depends_on;
  if found and d.required = p_required then
    return jsonb_build_object('dependency', to_jsonb(d));
  end if;
  select * into t from app.tasks where organization_id = p_organization_id and id = v_task_id;
  if t.status not in ('pending', 'blocked', 'waiting') then
    perform app.fail(409, 'state_conflict', format('A %s task takes no new dependencies', t.status));
  end if;
  d := app.task_dependency_add(p_organization_id, v_task_id, v_depends_on, p_required);
  perform app.task_settle(p_organization_id, v_task_id);
  return jsonb_build_object('dependency', to_jsonb(d));
end
$$;
