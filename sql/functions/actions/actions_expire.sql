-- Actions awaiting_approval → expired, whose time is over. Called by a job; the time is checked under the locks, so an early or repeated
-- call changes nothing. Returns {expired}.
-- Locks: roots → actions by id → inbox items → … as task_settle.
create or replace function app.actions_expire(p_organization_id uuid, p_action_ids uuid[])
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_expired integer := 0;
  a app.actions;
begin
  perform app.task_roots_lock(p_organization_id, array(
    select task_id from app.actions where organization_id = p_organization_id and id = any (p_action_ids) and task_id is not null),
    false);
  perform 1 from app.actions where organization_id = p_organization_id and id = any (p_action_ids)
    order by id for no key update;
  for a in
    select * from app.actions
      where organization_id = p_organization_id and id = any (p_action_ids) and status = 'awaiting_approval'
        and expires_at <= clock_timestamp()
      order by id
  loop
    perform app.action_expire(a);
    v_expired := v_expired + 1;
  end loop;
  return jsonb_build_object('expired', v_expired);
end
$$;
