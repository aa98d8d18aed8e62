-- Task failed, or cancelled by a failure → open, with everything that the same failure ended (docs/interface.md 3.6). Task
-- cancelled by a person → open, with everything that this cancel ended: for owners, who name the task that was cancelled. Task
-- blocked by a repair or needs_input question → settled, and the question is cancelled. Completed work, runs and consumed
-- budgets stay. The notification of the failure is closed.
-- Locks: roots → profiles (shared) → run requests → inbox items → (commit) dispatch.
-- Codes: 401 agent_unauthorized, 404 organization_not_found | task_not_found, 409 state_conflict.
create or replace function app.task_retry(p_organization_id uuid, p_task_ref text, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
  set plan_cache_mode = force_generic_plan
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_task_id uuid;
  t app.tasks;
  -- The task whose failure, or whose cancel by a person, ended what is reopened.
  v_origin uuid;
  v_ids uuid[];
  v_owners uuid[];
  v_to_plan uuid[];
  v_ready uuid[];
  v_to_settle uuid[];
  v_id uuid;
  v_above app.tasks;
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
  if t.failure_origin_id is null and t.status <> 'cancelled' then
    perform app.fail(409, 'state_conflict', format('Only failed or cancelled work is retried, and the task is %s', t.status));
  elsif t.failure_origin_id is null and p_actor ->> 'kind' <> 'owner' then
    perform app.fail(409, 'state_conflict', 'The task was cancelled, and only a person brings it back');
  elsif t.failure_origin_id is null and t.cancel_origin_id is distinct from t.id then
    perform app.fail(409, 'state_conflict', coalesce((
      select format('The task was cancelled together with %s-%s: retry that one', o.identifier_scope, o.identifier_number)
        from app.tasks o where o.organization_id = p_organization_id and o.id = t.cancel_origin_id),
      'The task was cancelled when the result of its initiative was accepted, and is not brought back'));
  end if;
  v_origin := coalesce(t.failure_origin_id, t.id);

  if exists (
    with recursive up as (
      select a.id, a.parent_id, a.status, a.failure_origin_id from app.tasks a
        where a.organization_id = p_organization_id and a.id = v_origin
      union all
      select a.id, a.parent_id, a.status, a.failure_origin_id from app.tasks a join up on a.id = up.parent_id
        where a.organization_id = p_organization_id
    )
    select 1 from up where status = 'cancelled' and failure_origin_id is null and id <> t.id
  ) then
    perform app.fail(409, 'state_conflict', 'A task above this one was cancelled by a person');
  end if;
  -- If it was replanned after the failure, an initiative may have ended without this task, or by another failure.
  select a.* into v_above from app.tasks f
    join app.tasks a on a.organization_id = f.organization_id and a.id = f.parent_id
    where f.organization_id = p_organization_id and f.id = v_origin;
  if v_above.phase = 'closed' and (t.failure_origin_id is null or v_above.failure_origin_id is distinct from v_origin) then
    perform app.fail(409, 'state_conflict', format('The initiative above the ended task is %s', v_above.status));
  end if;
  if v_above.phase = 'verify' and v_above.status = 'running' then
    perform app.fail(409, 'state_conflict', 'The initiative above the ended task is being verified');
  end if;
  select array_agg(k.id), array_agg(distinct k.owner_agent_profile_id),
      coalesce(array_agg(k.id) filter (where k.kind = 'initiative' and (k.replan is not null or not exists (
        select 1 from app.tasks c where c.organization_id = k.organization_id and c.parent_id = k.id))), '{}')
    into v_ids, v_owners, v_to_plan
    from app.tasks k
    where k.organization_id = p_organization_id and k.root_task_id = t.root_task_id
      and case when t.failure_origin_id is null then k.cancel_origin_id else k.failure_origin_id end = v_origin;
  -- As in task_create: a change of a profile's status finds these tasks open, or they see the new status.
  perform 1 from app.agent_profiles
    where organization_id = p_organization_id and id = any (v_owners) order by id for share;
  begin
    -- These may be thousands, so each is written once: most wait for prerequisites or children that reopen with them.
    with reopened as (
      update app.tasks k
        set status = case when b.blockers = '[]' or k.id = any (v_to_plan) then 'pending' else 'blocked' end,
          blockers = case when k.id = any (v_to_plan) then '[]' else b.blockers end,
          phase = case when k.id = any (v_to_plan) then 'plan' else 'execute' end,
          failure_origin_id = null, cancel_origin_id = null, error = null, contract = null, result = null
        from app.tasks_blockers(p_organization_id, v_ids) b
        where k.organization_id = p_organization_id and k.id = b.task_id
        returning k.id, k.kind, k.depth, k.status, k.blockers)
    -- The rest of task_settle. Deepest first, because an initiative may end with its last child.
    select array_agg(id) filter (where kind = 'task' and status = 'pending'),
        coalesce(array_agg(id order by depth desc, id) filter (where kind = 'initiative' and status = 'pending'
          or blockers @> '[{"kind": "budget"}]'), '{}')
      into v_ready, v_to_settle from reopened;
  exception when unique_violation then
    perform app.fail(409, 'state_conflict', 'Another open task has the dedupeKey of one of these');
  end;
  perform app.run_requests_ensure(p_organization_id, v_ready);
  foreach v_id in array v_to_settle loop
    perform app.task_settle(p_organization_id, v_id);
  end loop;
  if v_above.id is not null then
    update app.tasks set phase = 'execute'
      where organization_id = p_organization_id and id = v_above.id and phase = 'verify';
    perform app.task_settle(p_organization_id, v_above.id);
  end if;
  update app.human_inbox_items set status = 'cancelled', updated_at = clock_timestamp()
    where organization_id = p_organization_id and task_id = v_origin and status = 'open' and purpose = 'failure';
  perform app.prerequisite_close(p_organization_id, array(
    select d.task_id from app.task_dependencies d
      where d.organization_id = p_organization_id and d.depends_on_task_id = any (v_ids)));
  return jsonb_build_object('task', app.task_row(p_organization_id, t.id));
end
$$;
