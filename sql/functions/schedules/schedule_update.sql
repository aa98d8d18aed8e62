-- Changes a schedule, whatever its status, by a JSON merge patch. p_patch: {title, cron, timezone, taskTemplate, overlap},
-- validated in shape. p_next_run_at: the first fire after now of the new expression and zone, computed by the caller from the
-- version that it expects; a paused schedule does not take it. A changed template is checked as in schedule_create, and
-- a schedule that could not make its task notifies a person again if it still cannot. A patch that changes nothing leaves the
-- version as it is.
-- Locks: schedule → profile (shared) → … as schedule_template_refusal → run request of a capability.
-- Codes: 400 validation_failed, 401 agent_unauthorized, 404 organization_not_found | not_found | task_not_found, 409
-- state_conflict (stale, suspended).
create or replace function app.schedule_update(
  p_organization_id uuid, p_schedule_ref text, p_expected_version integer, p_patch jsonb, p_next_run_at timestamptz,
  p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_refusal jsonb;
  s app.schedules := app.schedule_find(p_organization_id, p_schedule_ref);
  n app.schedules := s;
begin
  -- Before the version is compared: whoever may not change the schedule learns nothing about it.
  perform app.actor_require(p_organization_id, p_actor, null);
  if s.id is null then
    perform app.fail(404, 'not_found', 'Schedule not found');
  end if;
  if s.version <> p_expected_version then
    perform app.fail(409, 'state_conflict', format('The schedule is at version %s', s.version),
      app.issue('expectedVersion', 'stale', format('the schedule is at version %s', s.version)));
  end if;
  if p_patch ? 'title' then n.title := p_patch ->> 'title'; end if;
  if p_patch ? 'cron' then n.cron := p_patch ->> 'cron'; end if;
  if p_patch ? 'timezone' then n.timezone := p_patch ->> 'timezone'; end if;
  if p_patch ? 'overlap' then n.overlap := coalesce(p_patch ->> 'overlap', 'skip'); end if;
  if p_patch ? 'taskTemplate' then
    -- The owner is named in one way: by id or by key.
    n.task_template := app.merge_patch(case
      when p_patch -> 'taskTemplate' ? 'ownerProfileKey' then s.task_template - 'ownerAgentProfileId'
      when p_patch -> 'taskTemplate' ? 'ownerAgentProfileId' then s.task_template - 'ownerProfileKey'
      else s.task_template end, p_patch -> 'taskTemplate');
  end if;
  if n.task_template <> s.task_template then
    if not n.task_template ?| array['ownerAgentProfileId', 'ownerProfileKey'] then
      n.task_template := jsonb_strip_nulls(jsonb_build_object('ownerAgentProfileId',
        (app.task_profile(p_organization_id, n.task_template, p_actor)).id)) || n.task_template;
    end if;
    v_refusal := app.schedule_template_refusal(p_organization_id, n.task_template, p_actor);
    if v_refusal is not null then
      perform app.fail((v_refusal ->> 'status')::integer, v_refusal ->> 'code', v_refusal ->> 'message', v_refusal -> 'issues');
    end if;
    n.failing_since := null;
  end if;
  if (n.cron, n.timezone) is distinct from (s.cron, s.timezone) and s.status = 'active' then
    n.next_run_at := p_next_run_at;
  end if;
  if n is distinct from s then
    update app.schedules
      set title = n.title, cron = n.cron, timezone = n.timezone, overlap = n.overlap, task_template = n.task_template,
        failing_since = n.failing_since, next_run_at = n.next_run_at, version = version + 1, updated_at = clock_timestamp()
      where organization_id = p_organization_id and id = s.id
      returning * into s;
  end if;
  return jsonb_build_object('schedule', to_jsonb(s));
end
$$;
