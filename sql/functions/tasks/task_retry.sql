-- failed | cancelled by a failure → open again, together with all that the same failure touched (contract 3.6); blocked by
-- a question about its contract or its needs → the question ends and the task goes on. Completed work, run history and
-- consumed budgets stay. Locks: roots → profiles (shared) → run requests → (commit) dispatch.
-- Codes: 401 agent_unauthorized, 404 organization_not_found | task_not_found, 409 state_conflict.
create or replace function app.task_retry(p_organization_id uuid, p_task_ref text, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_task_id uuid;
  t app.tasks;
  v_ids uuid[];
  v_ready uuid[];
  v_id uuid;
  v_above app.tasks;
  v_enabled uuid[];
begin
  v_task_id := app.task_find(p_organization_id, p_task_ref);
  perform app.task_roots_lock(p_organization_id, array[v_task_id], true);
  perform app.actor_require(p_organization_id, p_actor, v_task_id);
  select * into t from app.tasks where organization_id = p_organization_id and id = v_task_id;
  if not found then
    perform app.fail(404, 'task_not_found', 'Task not found');
  end if;

  if t.status = 'blocked' and t.blockers @> '[{"kind": "human"}]' then
    update app.human_inbox_items set status = 'cancelled', updated_at = clock_timestamp()
      where organization_id = p_organization_id and task_id = t.id and status = 'open' and blocking
        and purpose in ('repair', 'needs_input');
    if not found then
      perform app.fail(409, 'state_conflict', 'The task waits for an answer in the inbox');
    end if;
    update app.tasks set contract = null where organization_id = p_organization_id and id = t.id;
    perform app.task_settle(p_organization_id, t.id);
    return jsonb_build_object('task', app.task_row(p_organization_id, t.id));
  end if;
  if t.failure_origin_id is null then
    perform app.fail(409, 'state_conflict', case when t.status = 'cancelled'
      then 'The task was cancelled by a person, and is not brought back'
      else format('Only failed work is retried, and the task is %s', t.status) end);
  end if;

  if exists (
    with recursive up as (
      select a.id, a.parent_id, a.status, a.failure_origin_id from app.tasks a
        where a.organization_id = p_organization_id and a.id = t.failure_origin_id
      union all
      select a.id, a.parent_id, a.status, a.failure_origin_id from app.tasks a join up on a.id = up.parent_id
        where a.organization_id = p_organization_id
    )
    select 1 from up where status = 'cancelled' and failure_origin_id is null
  ) then
    perform app.fail(409, 'state_conflict', 'A parent of the failed task was cancelled by a person');
  end if;
  -- Planned anew after the failure, an initiative may have ended without it, or by another one.
  select a.* into v_above from app.tasks f
    join app.tasks a on a.organization_id = f.organization_id and a.id = f.parent_id
    where f.organization_id = p_organization_id and f.id = t.failure_origin_id;
  if v_above.phase = 'closed' and v_above.failure_origin_id is distinct from t.failure_origin_id then
    perform app.fail(409, 'state_conflict', format('The initiative above the failed task is %s', v_above.status));
  end if;
  if v_above.phase = 'verify' and v_above.status = 'running' then
    perform app.fail(409, 'state_conflict', 'The initiative above the failed task is being verified');
  end if;
  -- As at their creation: a change of a profile's status finds these tasks open, or they see it.
  with locked as (
    select p.id, p.status from app.agent_profiles p
      where p.organization_id = p_organization_id
        and p.id in (select owner_agent_profile_id from app.tasks where organization_id = p_organization_id
          and root_task_id = t.root_task_id and failure_origin_id = t.failure_origin_id)
      order by p.id for share of p
  )
  select coalesce(array_agg(id) filter (where status = 'enabled'), '{}') into v_enabled from locked;
  begin
    -- Most of a large hierarchy waits for its prerequisites, which are not completed before and after this alike, and for
    -- nothing else: never run and nothing above used up, so no budget; closed until now, so no question. Initiatives wait
    -- for the children that come back with them. These are blocked here, thousands at once. All others are settled one by one.
    with touched as materialized (
      select k.id, k.parent_id, k.kind, k.consumed_agent_run_count, k.scheduled_at, k.owner_agent_profile_id, k.replan
        from app.tasks k
        where k.organization_id = p_organization_id and k.root_task_id = t.root_task_id
          and k.failure_origin_id = t.failure_origin_id
    ), parents as materialized (
      select distinct parent_id as id from touched where parent_id is not null
    ), used_up as materialized (
      select id from parents where app.task_budget_used(p_organization_id, id)
    ), completed as materialized (
      select k.id from app.tasks k
        where k.organization_id = p_organization_id and k.root_task_id = t.root_task_id and k.status = 'completed'
    ), found as materialized (
      -- Subqueries, not joins: nobody tells the planner how many these are.
      select touched.id, case
          when touched.scheduled_at > clock_timestamp() or touched.owner_agent_profile_id <> all (v_enabled)
            or touched.kind = 'task' and (touched.consumed_agent_run_count > 0 or touched.parent_id in (select id from used_up))
            or touched.kind = 'initiative' and (touched.replan is not null
              or touched.id not in (select id from parents))
          then '[]'
          else coalesce((
              select jsonb_agg(jsonb_build_object('kind', 'dependency', 'taskId', d.depends_on_task_id)
                  order by d.created_at, d.id)
                from app.task_dependencies d
                where d.organization_id = p_organization_id and d.task_id = touched.id and d.required
                  and case when d.depends_on_root_task_id = t.root_task_id
                    then d.depends_on_task_id not in (select id from completed)
                    else exists (select 1 from app.tasks p where p.organization_id = p_organization_id
                      and p.id = d.depends_on_task_id and p.status <> 'completed') end), '[]')
            || case touched.kind when 'initiative' then '[{"kind": "children"}]'::jsonb else '[]' end
          end as blockers
        from touched
    ), reopened as (
      update app.tasks k
        set status = case when f.blockers <> '[]' then 'blocked' else 'pending' end, blockers = f.blockers,
          phase = case
            when k.kind = 'initiative' and (k.replan is not null or not exists (select 1 from app.tasks c
              where c.organization_id = k.organization_id and c.parent_id = k.id)) then 'plan'
            else 'execute' end, failure_origin_id = null, error = null, contract = null, result = null
        from found f
        where k.organization_id = p_organization_id and k.id = f.id
        returning k.id, k.depth, k.status)
    -- Deepest first: whether an initiative still waits follows from its children.
    select array_agg(id), coalesce(array_agg(id order by depth desc, id) filter (where status = 'pending'), '{}')
      into v_ids, v_ready from reopened;
  exception when unique_violation then
    perform app.fail(409, 'state_conflict', 'Another open task has the dedupeKey of one of these');
  end;
  foreach v_id in array v_ready loop
    perform app.task_settle(p_organization_id, v_id);
  end loop;
  if v_above.id is not null then
    update app.tasks set phase = 'execute'
      where organization_id = p_organization_id and id = v_above.id and phase = 'verify';
    perform app.task_settle(p_organization_id, v_above.id);
  end if;
  -- What waited for one of them was told that it never completes; that notice is over, unless another one is over too.
  update app.human_inbox_items i set status = 'cancelled', updated_at = clock_timestamp()
    from app.task_dependencies d
    where i.organization_id = p_organization_id and i.status = 'open' and i.purpose = 'prerequisite'
      and d.organization_id = i.organization_id and d.task_id = i.task_id and d.depends_on_task_id = any (v_ids)
      and not exists (
        select 1 from app.task_dependencies o
          join app.tasks p on p.organization_id = o.organization_id and p.id = o.depends_on_task_id
          where o.organization_id = i.organization_id and o.task_id = i.task_id and o.required
            and p.status in ('failed', 'cancelled'));
  return jsonb_build_object('task', app.task_row(p_organization_id, t.id));
end
$$;
