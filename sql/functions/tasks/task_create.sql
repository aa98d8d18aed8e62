-- Task (none) → pending | blocked (docs/interface.md 2.9). p_task: {title, kind, parentId, ownerAgentProfileId |
-- ownerProfileKey, priority, spec, dependsOn[], dedupeKey, scheduledAt, dueAt, sourceChatId, sourceMessageId}, validated in
-- shape.
-- Without an owner the task is that of the run's profile, or else the operator's (task_profile).
-- A new initiative is in phase plan, to be planned by its owner. If anyone else adds a task below it before it runs, that is
-- its plan: it goes to phase execute, waits for its children, and is not planned by its owner any more.
-- Returns {task, created}: an open task with the same dedupeKey is returned instead of a new one.
-- Locks: profile (shared) → roots of the parent and the prerequisites → task number → edges → (commit) dispatch.
-- Codes: 400 validation_failed, 401 agent_unauthorized, 404 organization_not_found | task_not_found, 409 state_conflict.
create or replace function app.task_create(p_organization_id uuid, p_task jsonb, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_id uuid := app.uuid_v7();
  v_kind text := coalesce(p_task ->> 'kind', 'task');
  v_dedupe_key text := coalesce(p_task ->> 'dedupeKey', v_id::text);
  v_parent app.tasks;
  v_profile app.agent_profiles;
  v_limits jsonb;
  v_issues jsonb;
  v_actor jsonb;
  v_ref text;
  v_prerequisite uuid;
  v_prerequisites uuid[] := '{}';
  v_existing uuid;
  v_number integer;
begin
  for v_ref in select jsonb_array_elements_text(coalesce(p_task -> 'dependsOn', '[]')) loop
    v_prerequisite := app.task_find(p_organization_id, v_ref);
    if v_prerequisite is null then
      perform app.actor_require(p_organization_id, p_actor, (p_task ->> 'parentId')::uuid);
      perform app.fail(404, 'task_not_found', format('Prerequisite %s not found', v_ref),
        app.issue('dependsOn', 'not_found', format('no task %s', v_ref)));
    end if;
    v_prerequisites := v_prerequisites || v_prerequisite;
  end loop;
  -- Creations share the lock; a change of the profile's status excludes them. Either that change finds this task among the open
  -- ones, or this task is created with the new status.
  v_profile := app.task_profile(p_organization_id, p_task, p_actor);
  perform app.task_roots_lock(p_organization_id, v_prerequisites || (p_task ->> 'parentId')::uuid, false);
  v_actor := app.actor_require(p_organization_id, p_actor, (p_task ->> 'parentId')::uuid);
  select config -> 'limits' into v_limits from app.organizations where id = p_organization_id;

  select id into v_existing from app.tasks
    where organization_id = p_organization_id and dedupe_key = v_dedupe_key
      and status in ('pending', 'blocked', 'running', 'waiting');
  if found then
    return jsonb_build_object('task', app.task_row(p_organization_id, v_existing), 'created', false);
  end if;

  if p_task ->> 'parentId' is not null then
    select * into v_parent from app.tasks
      where organization_id = p_organization_id and id = (p_task ->> 'parentId')::uuid;
    if not found then
      perform app.fail(404, 'task_not_found', 'Parent task not found', app.issue('parentId', 'not_found', 'no such task'));
    end if;
    if v_parent.kind <> 'initiative' or v_parent.phase = 'closed' then
      perform app.fail(409, 'state_conflict', 'Only an open initiative takes tasks below it',
        app.issue('parentId', 'not_an_open_initiative', format('the %s is %s', v_parent.kind, v_parent.status)));
    end if;
    if v_parent.depth + 1 > (v_limits ->> 'maxTaskDepth')::integer then
      perform app.fail(409, 'state_conflict', format('Deeper than maxTaskDepth (%s)', v_limits ->> 'maxTaskDepth'),
        app.issue('parentId', 'max_task_depth', 'the hierarchy is as deep as it may be'));
    end if;
    if (select count(*) from app.tasks where organization_id = p_organization_id
          and root_task_id = v_parent.root_task_id) > (v_limits ->> 'maxInitiativeDescendants')::integer then
      perform app.fail(409, 'state_conflict',
        format('More tasks than maxInitiativeDescendants (%s)', v_limits ->> 'maxInitiativeDescendants'),
        app.issue('parentId', 'max_initiative_descendants', 'the initiative has as many tasks as it may'));
    end if;
  end if;

  if v_kind = 'initiative' and coalesce(v_parent.depth + 1, 0) >= (v_limits ->> 'maxTaskDepth')::integer then
    perform app.fail(409, 'state_conflict',
      format('An initiative at maxTaskDepth (%s) could have no tasks below it', v_limits ->> 'maxTaskDepth'),
      app.issue('kind', 'max_task_depth', 'nothing may be below an initiative as deep as this'));
  end if;

  if v_profile.id is null then
    perform app.fail(400, 'validation_failed', 'The owner of the task is not a profile of this organization',
      app.agent_profile_unknown(p_organization_id,
        case when p_task ? 'ownerAgentProfileId' then 'ownerAgentProfileId' else 'ownerProfileKey' end,
        p_task ?| array['ownerAgentProfileId', 'ownerProfileKey']));
  end if;

  v_issues := app.task_source_issues(p_organization_id, p_task);
  if v_issues <> '[]' then
    perform app.fail(400, 'validation_failed', 'The task cannot come from there', v_issues);
  end if;

  if p_task -> 'spec' ?| array['verification', 'verifierProfileKey'] then
    perform app.task_verifier_require(p_organization_id, p_task -> 'spec', v_profile.id);
  end if;

  update app.task_identifiers set last_number = last_number + 1
    where organization_id = p_organization_id and scope = case v_kind when 'initiative' then 'I' else 'T' end
    returning last_number into v_number;

  insert into app.tasks (organization_id, id, identifier_scope, identifier_number, parent_id, root_task_id, depth,
      owner_agent_profile_id, source_chat_id, source_message_id, kind, status, phase, title, priority, created_by_run_id,
      spec, dedupe_key, scheduled_at, due_at)
    values (p_organization_id, v_id, case v_kind when 'initiative' then 'I' else 'T' end, v_number, v_parent.id,
      coalesce(v_parent.root_task_id, v_id), coalesce(v_parent.depth + 1, 0), v_profile.id,
      (p_task ->> 'sourceChatId')::uuid, (p_task ->> 'sourceMessageId')::uuid, v_kind, 'pending',
      case v_kind when 'initiative' then 'plan' else 'execute' end,
      p_task ->> 'title', coalesce((p_task ->> 'priority')::integer, 0), (v_actor ->> 'runId')::uuid,
      app.merge_patch(app.task_spec_defaults(v_kind), p_task -> 'spec'), v_dedupe_key,
      (p_task ->> 'scheduledAt')::timestamptz, (p_task ->> 'dueAt')::timestamptz)
    on conflict (organization_id, dedupe_key) where status in ('pending', 'blocked', 'running', 'waiting') do nothing;
  if not found then
    -- Another transaction created it since the check above: return that task.
    select id into v_existing from app.tasks
      where organization_id = p_organization_id and dedupe_key = v_dedupe_key
        and status in ('pending', 'blocked', 'running', 'waiting');
    if not found then
      raise exception using errcode = '40001', message = 'the task with this dedupeKey ended meanwhile';
    end if;
    return jsonb_build_object('task', app.task_row(p_organization_id, v_existing), 'created', false);
  end if;

  foreach v_prerequisite in array v_prerequisites loop
    perform app.task_dependency_add(p_organization_id, v_id, v_prerequisite, true);
  end loop;

  -- Checked last: a schedule that waits for the verdict then knows that nothing else prevents the task.
  if v_parent.phase = 'verify' and v_parent.status = 'running' then
    perform app.fail(409, 'state_conflict', 'The initiative is being verified',
      app.issue('parentId', 'being_verified', 'wait for the verdict'));
  end if;
  if v_parent.id is not null then
    update app.tasks set graph_revision = graph_revision + 1
      where organization_id = p_organization_id and id = v_parent.root_task_id;
    if v_parent.phase = 'verify' or v_parent.phase = 'plan' and v_parent.status <> 'running' and not exists (
        select 1 from app.tasks where organization_id = p_organization_id and parent_id = v_parent.id and id <> v_id) then
      update app.tasks set phase = 'execute' where organization_id = p_organization_id and id = v_parent.id;
    end if;
    perform app.task_settle(p_organization_id, v_parent.id);
  end if;
  perform app.task_settle(p_organization_id, v_id);
  return jsonb_build_object('task', app.task_row(p_organization_id, v_id), 'created', true);
end
$$;
