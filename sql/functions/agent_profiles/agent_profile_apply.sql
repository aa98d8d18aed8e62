-- Writes a changed profile with all consequences. enabled → disabled: its claims and capabilities end, its runs are cancelled,
-- its open tasks are blocked by {kind: profile}, its chat turns fail. disabled → enabled: its tasks are settled. Another
-- status, kind, department or tool policy raises the organization's authorizationEpoch.
-- The caller has locked the organization. Locks: (organization) → roots of the open tasks → run requests → runs → messages →
-- (commit) dispatch.
create or replace function app.agent_profile_apply(o app.agent_profiles, n app.agent_profiles)
  returns app.agent_profiles
  language plpgsql
as $$
declare
  v_tasks uuid[];
  v_verified uuid[];
  v_ended uuid[];
  v_id uuid;
begin
  if n is not distinct from o then
    return o;
  end if;
  if n.status <> o.status then
    select coalesce(array_agg(id), '{}') into v_tasks from app.tasks
      where organization_id = o.organization_id and owner_agent_profile_id = o.id
        and status in ('pending', 'blocked', 'running', 'waiting');
    -- This change may give these tasks another verifier.
    select coalesce(array_agg(id), '{}') into v_verified from app.tasks
      where organization_id = o.organization_id and phase = 'verify' and owner_agent_profile_id <> o.id;
    perform app.task_roots_lock(o.organization_id, v_tasks || v_verified, true);
    -- Some may have ended or changed owner since. None was added, since that requires a lock on the profile.
    select coalesce(array_agg(id), '{}') into v_tasks from app.tasks
      where organization_id = o.organization_id and owner_agent_profile_id = o.id and id = any (v_tasks)
        and status in ('pending', 'blocked', 'running', 'waiting');
  end if;
  update app.agent_profiles
    set key = n.key, name = n.name, kind = n.kind, department = n.department, status = n.status, root_uri = n.root_uri,
      instructions_uri = n.instructions_uri, config = n.config, tool_policy_narrowed = n.tool_policy_narrowed,
      deleted_at = n.deleted_at, updated_at = clock_timestamp()
    where organization_id = o.organization_id and id = o.id
    returning * into n;
  if (n.status, n.kind, n.department, n.config -> 'toolPolicyKeys')
     is distinct from (o.status, o.kind, o.department, o.config -> 'toolPolicyKeys') then
    update app.organizations set authorization_epoch = authorization_epoch + 1, updated_at = clock_timestamp()
      where id = o.organization_id;
  end if;
  if n.status <> o.status then
    if n.status = 'disabled' then
      perform app.chat_turns_end_unavailable(o.organization_id, o.id);
      select v_tasks || coalesce(array_agg(r.task_id), '{}') into v_ended from app.run_requests r
        where r.organization_id = o.organization_id and r.agent_profile_id = o.id and r.task_id = any (v_verified)
          and r.mode = 'verify' and r.cancel_requested_at is null
          and r.state in ('queued', 'published', 'leased', 'started');
      perform app.task_requests_cancel(o.organization_id, v_ended);
      update app.tasks set status = 'pending', active_run_id = null
        where organization_id = o.organization_id and id = any (v_ended) and status = 'running';
    end if;
    foreach v_id in array v_tasks || v_verified loop
      perform app.task_settle(o.organization_id, v_id);
    end loop;
  elsif n.kind <> o.kind or n.key <> o.key then
    perform app.tasks_settle_verification(o.organization_id);
  end if;
  if n.config -> 'maxConcurrentRuns' <> o.config -> 'maxConcurrentRuns' then
    perform 1 from app.dispatch where organization_id = o.organization_id and kind = 'task' for no key update;
    with before as (
      select open from app.dispatch_lanes
        where organization_id = o.organization_id and agent_profile_id = o.id and kind = 'task'
    ), after as (
      update app.dispatch_lanes set capacity = (n.config ->> 'maxConcurrentRuns')::integer
        where organization_id = o.organization_id and agent_profile_id = o.id and kind = 'task'
        returning open
    )
    update app.dispatch d set open_lanes = d.open_lanes + after.open::integer - before.open::integer
      from before, after
      where d.organization_id = o.organization_id and d.kind = 'task';
  end if;
  return n;
end
$$;
