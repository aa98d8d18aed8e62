-- Schedule paused → active. p_next_run_at: the first fire after now, computed by the caller from the version p_version; null: the
-- caller found no such schedule. An active schedule stays as it is. If it cannot make its task, a person is notified again.
-- Locks: schedule → run request of a capability.
-- Codes: 401 agent_unauthorized, 404 organization_not_found | not_found, 409 state_conflict (suspended; stale:
-- it was changed since it was read).
create or replace function app.schedule_resume(
  p_organization_id uuid, p_schedule_ref text, p_next_run_at timestamptz, p_version integer, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  s app.schedules := app.schedule_find(p_organization_id, p_schedule_ref);
begin
  perform app.actor_require(p_organization_id, p_actor, null);
  if s.id is null or s.status = 'paused' and p_next_run_at is null then
    perform app.fail(404, 'not_found', 'Schedule not found');
  end if;
  if s.status = 'paused' then
    if s.version is distinct from p_version then
      perform app.fail(409, 'state_conflict', 'The schedule was changed meanwhile: try again',
        app.issue('scheduleRef', 'stale', 'was changed meanwhile'));
    end if;
    update app.schedules
      set status = 'active', next_run_at = p_next_run_at, failing_since = null, updated_at = clock_timestamp()
      where organization_id = p_organization_id and id = s.id
      returning * into s;
  end if;
  return jsonb_build_object('schedule', to_jsonb(s));
end
$$;
