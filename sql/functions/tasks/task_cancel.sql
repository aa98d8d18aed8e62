-- Task open → cancelled, with everything open below it. A repeat changes nothing. A task that a failure had cancelled now
-- counts as cancelled by a person, so that no retry of the failure reopens it.
-- Locks: all roots that the end can reach → run requests → runs → (commit) dispatch.
-- Codes: 401 agent_unauthorized, 404 organization_not_found | task_not_found, 409 state_conflict (completed, failed).
create or replace function app.task_cancel(p_organization_id uuid, p_task_ref text, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_task_id uuid;
  t app.tasks;
  v_ids uuid[];
begin
  v_task_id := app.task_find(p_organization_id, p_task_ref);
  perform app.task_roots_lock(p_organization_id, array[v_task_id], true);
  perform app.actor_require(p_organization_id, p_actor, v_task_id);
  select * into t from app.tasks where organization_id = p_organization_id and id = v_task_id;
  if not found then
    perform app.fail(404, 'task_not_found', 'Task not found');
  end if;
  if t.status in ('completed', 'failed') then
    perform app.fail(409, 'state_conflict', format('The task is %s', t.status));
  end if;
  with recursive down as (
    select v_task_id as id
    union all
    select c.id from app.tasks c join down on c.parent_id = down.id where c.organization_id = p_organization_id
  )
  select array_agg(id) into v_ids from down;
  update app.tasks set failure_origin_id = null, cancel_origin_id = v_task_id
    where organization_id = p_organization_id and id = any (v_ids) and status = 'cancelled'
      and failure_origin_id is not null;
  if t.status <> 'cancelled' then
    perform app.tasks_cancel(p_organization_id, v_ids, null, v_task_id);
  end if;
  return jsonb_build_object('task', app.task_row(p_organization_id, v_task_id));
end
$$;
