-- Changes an open task by a JSON merge patch. p_patch: {title, priority, spec, ownerAgentProfileId | ownerProfileKey,
-- scheduledAt, dueAt}, validated in shape. Spec, owner and scheduledAt of a running task are refused; if the task is claimed,
-- run request leased → published, because its worker was given the old values.
-- Locks: root → profile (shared, of a new owner) → run request → (commit) dispatch.
-- Codes: 400 validation_failed, 401 agent_unauthorized, 404 organization_not_found | task_not_found, 409 state_conflict.
create or replace function app.task_update(
  p_organization_id uuid, p_task_ref text, p_expected_version integer, p_patch jsonb, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_task_id uuid;
  t app.tasks;
  n app.tasks;
  v_owner uuid;
  v_below uuid;
  v_named boolean;
  v_structural boolean := p_patch ?| array['spec', 'ownerAgentProfileId', 'ownerProfileKey', 'scheduledAt'];
begin
  v_task_id := app.task_find(p_organization_id, p_task_ref);
  perform app.task_roots_lock(p_organization_id, array[v_task_id], true);
  perform app.actor_require(p_organization_id, p_actor, v_task_id);
  select * into t from app.tasks where organization_id = p_organization_id and id = v_task_id;
  if not found then
    perform app.fail(404, 'task_not_found', 'Task not found');
  end if;
  if t.version <> p_expected_version then
    perform app.fail(409, 'state_conflict', format('The task is at version %s', t.version),
      app.issue('expectedVersion', 'stale', format('the task is at version %s', t.version)));
  end if;
  if t.phase = 'closed' then
    perform app.fail(409, 'state_conflict', format('The task is %s', t.status));
  end if;
  if t.status = 'running' and v_structural then
    perform app.fail(409, 'state_conflict', 'The task is running: its spec, owner and schedule cannot change now');
  end if;

  n := t;
  if p_patch ?| array['ownerAgentProfileId', 'ownerProfileKey'] then
    select id into v_owner from app.agent_profiles p
      where p.organization_id = p_organization_id and p.deleted_at is null
        and case when p_patch ? 'ownerAgentProfileId' then p.id = (p_patch ->> 'ownerAgentProfileId')::uuid
            else p.key = p_patch ->> 'ownerProfileKey' end
      for share;
    if not found then
      perform app.fail(400, 'validation_failed', 'The owner of the task is not a profile of this organization',
        app.agent_profile_unknown(p_organization_id,
          case when p_patch ? 'ownerProfileKey' then 'ownerProfileKey' else 'ownerAgentProfileId' end));
    end if;
    n.owner_agent_profile_id := v_owner;
  end if;
  if p_patch ? 'title' then n.title := p_patch ->> 'title'; end if;
  if p_patch ? 'priority' then n.priority := coalesce((p_patch ->> 'priority')::integer, 0); end if;
  if p_patch ? 'scheduledAt' then n.scheduled_at := (p_patch ->> 'scheduledAt')::timestamptz; end if;
  if p_patch ? 'dueAt' then n.due_at := (p_patch ->> 'dueAt')::timestamptz; end if;
  if p_patch ? 'spec' then
    n.spec := app.merge_patch(app.task_spec_defaults(t.kind), app.merge_patch(t.spec, p_patch -> 'spec'));
  end if;
  v_named := n.spec ->> 'verifierProfileKey' is distinct from t.spec ->> 'verifierProfileKey';
  if v_named or n.spec ->> 'verification' = 'agent'
     and (n.spec, n.owner_agent_profile_id) is distinct from (t.spec, t.owner_agent_profile_id) then
    perform app.task_verifier_require(p_organization_id, n.spec, n.owner_agent_profile_id, v_named);
  end if;
  if t.phase = 'verify' and n.spec - 'budget' <> t.spec - 'budget' then
    -- The result to verify belongs to another spec.
    n.phase := 'execute';
    perform app.task_requests_cancel(p_organization_id, array[t.id]);
  end if;
  update app.tasks set phase = n.phase, title = n.title, priority = n.priority, spec = n.spec, scheduled_at = n.scheduled_at,
      due_at = n.due_at, owner_agent_profile_id = n.owner_agent_profile_id,
      spend_allowance = case when n.spec -> 'budget' = t.spec -> 'budget' then spend_allowance end
    where organization_id = p_organization_id and id = t.id;

  if n.owner_agent_profile_id <> t.owner_agent_profile_id then
    perform app.task_requests_cancel(p_organization_id, array[t.id]);
  elsif (n.spec, n.scheduled_at) is distinct from (t.spec, t.scheduled_at) then
    -- Locked before its state is read: a pull that claims it may not have committed yet.
    perform 1 from app.run_requests
      where organization_id = p_organization_id and task_id = t.id and state in ('published', 'leased') for no key update;
    update app.run_requests
      set state = 'published', published_at = clock_timestamp(), lease_secret_hash = null, lease_expires_at = null
      where organization_id = p_organization_id and task_id = t.id and state = 'leased';
  end if;
  if n.priority <> t.priority then
    update app.run_requests set priority = n.priority
      where organization_id = p_organization_id and task_id = t.id
        and state in ('queued', 'published', 'leased', 'started');
  end if;
  perform app.task_settle(p_organization_id, t.id);
  if t.kind = 'initiative' and n.spec -> 'budget' <> t.spec -> 'budget' then
    -- The budget also covers all tasks below: those that waited for it are settled.
    for v_below in
      with recursive down as (
        select c.id from app.tasks c where c.organization_id = p_organization_id and c.parent_id = t.id
        union all
        select c.id from app.tasks c join down on c.parent_id = down.id where c.organization_id = p_organization_id
      )
      select id from down
    loop
      perform app.task_settle(p_organization_id, v_below);
    end loop;
  end if;
  return jsonb_build_object('task', app.task_row(p_organization_id, t.id));
end
$$;
