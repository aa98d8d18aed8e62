-- Schedule (none) → active (docs/interface.md 2.15). p_schedule: {key, title, cron, timezone, taskTemplate, overlap}, validated
-- in shape. p_next_run_at: the first fire, computed by the caller.
-- If the template names no owner, the profile of the run that creates it owns the tasks, or else the operator, and the template
-- records it. A
-- template that cannot become a task right now is refused with the error that creating that task would give.
-- Locks: profile (shared, so that its deletion waits) → … as schedule_template_refusal → run request of a capability.
-- Codes: 400 validation_failed, 401 agent_unauthorized, 404 organization_not_found | task_not_found, 409 state_conflict.
create or replace function app.schedule_create(
  p_organization_id uuid, p_schedule jsonb, p_next_run_at timestamptz, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_id uuid := app.uuid_v7();
  v_template jsonb := p_schedule -> 'taskTemplate';
  v_refusal jsonb;
  v_profile app.agent_profiles;
  s app.schedules;
begin
  v_profile := app.task_profile(p_organization_id, v_template, p_actor);
  v_refusal := app.schedule_template_refusal(p_organization_id, v_template, p_actor);
  perform app.actor_require(p_organization_id, p_actor, null);
  if v_refusal is not null then
    perform app.fail((v_refusal ->> 'status')::integer, v_refusal ->> 'code', v_refusal ->> 'message', v_refusal -> 'issues');
  end if;
  if not v_template ?| array['ownerAgentProfileId', 'ownerProfileKey'] then
    v_template := v_template || jsonb_build_object('ownerAgentProfileId', v_profile.id);
  end if;
  insert into app.schedules (organization_id, id, key, title, cron, timezone, task_template, overlap, next_run_at)
    values (p_organization_id, v_id, coalesce(p_schedule ->> 'key', 'schedule-' || v_id),
      coalesce(p_schedule ->> 'title', v_template ->> 'title'), p_schedule ->> 'cron', p_schedule ->> 'timezone',
      v_template, coalesce(p_schedule ->> 'overlap', 'skip'), p_next_run_at)
    on conflict (organization_id, key) do nothing
    returning * into s;
  if not found then
    perform app.fail(409, 'state_conflict', 'Another schedule has this key',
      app.issue('key', 'in_use', 'is the key of another schedule'));
  end if;
  return jsonb_build_object('schedule', to_jsonb(s));
end
$$;
