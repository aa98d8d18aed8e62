-- Fires a due schedule: next_run_at moves to p_next_run_at, and its template becomes one task, whose dedupe key names schedule
-- and fire time.
-- No task is made if the previous one is open and overlap is skip or work dispatch is stopped; if the organization is
-- suspended; if the profile is disabled, or the task is refused (a person is notified once). While the parent waits for a
-- verdict the fire is postponed and stays due; further fires merge with it.
-- p_fire_at, p_version: the fire and the version that the caller has read. p_next_run_at: the first fire after now, so that all
-- fires missed meanwhile make this one task. If one of them has changed, nothing happens: early, late and concurrent calls are
-- harmless, and no fire follows from an expression that was replaced. p_now: for tests.
-- Locks: schedule → profile (shared) → … as task_create → inbox item.
-- Returns {outcome: unchanged | postponed | fired | skipped | failed, taskId}.
create or replace function app.schedule_fire(
  p_organization_id uuid, p_schedule_id uuid, p_fire_at timestamptz, p_version integer, p_next_run_at timestamptz,
  p_now timestamptz default clock_timestamp())
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  s app.schedules;
  v_status text;
  v_stopped boolean;
  v_task jsonb;
  v_skipped boolean;
  v_key text;
  v_reason text;
  v_issues text;
begin
  select * into s from app.schedules
    where organization_id = p_organization_id and id = p_schedule_id for no key update;
  if s.next_run_at is distinct from p_fire_at or s.version is distinct from p_version or s.next_run_at is null
     or s.next_run_at > p_now or p_next_run_at <= p_fire_at then
    return '{"outcome": "unchanged"}';
  end if;
  select o.status, d.stopped into v_status, v_stopped
    from app.organizations o
    join app.dispatch d on d.organization_id = o.id and d.kind = 'task'
    where o.id = p_organization_id and o.deleted_at is null;
  if not found then
    return '{"outcome": "unchanged"}';
  end if;
  v_skipped := v_status = 'suspended' or (v_stopped or s.overlap = 'skip') and exists (
    select 1 from app.tasks where organization_id = s.organization_id and schedule_id = s.id
      and status in ('pending', 'blocked', 'running', 'waiting'));
  if not v_skipped and (app.task_profile(s.organization_id, s.task_template, null)).status is distinct from 'enabled' then
    v_reason := 'the profile that owns its tasks is disabled or gone';
  elsif not v_skipped then
    -- The chat that the schedule comes from may be gone.
    if app.task_source_issues(s.organization_id, s.task_template) <> '[]' then
      s.task_template := s.task_template - 'sourceChatId' - 'sourceMessageId';
    end if;
    begin
      v_key := format('schedule:%s:%s', s.id, to_char(p_fire_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"'));
      v_task := app.task_create(s.organization_id, s.task_template || jsonb_build_object('dedupeKey', v_key),
        '{"kind": "owner"}');
      if not (v_task ->> 'created')::boolean then
        -- A task made by hand has this dedupe key. It is another task; this fire needs no key to happen only once.
        v_task := app.task_create(s.organization_id, s.task_template, '{"kind": "owner"}');
      end if;
      v_task := v_task -> 'task';
    exception when sqlstate 'RN400' or sqlstate 'RN404' or sqlstate 'RN409' then
      get stacked diagnostics v_reason = message_text, v_issues = pg_exception_hint;
      if nullif(v_issues, '')::jsonb @> '[{"code": "being_verified"}]' then
        return '{"outcome": "postponed"}';
      end if;
    end;
  end if;

  update app.schedules set next_run_at = p_next_run_at, updated_at = clock_timestamp()
    where organization_id = s.organization_id and id = s.id;
  if v_skipped then
    return '{"outcome": "skipped"}';
  end if;
  if v_reason is not null then
    perform app.schedule_mark_failing(s, v_reason, p_now);
    return '{"outcome": "failed"}';
  end if;
  update app.tasks set schedule_id = s.id
    where organization_id = s.organization_id and id = (v_task ->> 'id')::uuid;
  update app.schedules
    set last_run_at = p_fire_at, last_task_id = (v_task ->> 'id')::uuid, failing_since = null
    where organization_id = s.organization_id and id = s.id;
  -- Also when it was resumed or changed since it failed, which forgets that it failed and leaves the notification open.
  update app.human_inbox_items set status = 'cancelled', updated_at = clock_timestamp()
    where organization_id = s.organization_id and schedule_id = s.id and status = 'open';
  return jsonb_build_object('outcome', 'fired', 'taskId', v_task -> 'id');
end
$$;
