-- Keeps the counters equal to the rows whatever function moves a request. Deferred to the commit, so that the
-- dispatch row (the hottest one of an organization) is the last lock of every transaction. A pull, which locks the
-- dispatch row first and moves many requests, counts for itself: published → leased is left to it.
create or replace function app.run_requests_count()
  returns trigger
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', new.organization_id::text, true);
  v_ready integer := (new.state = 'published')::integer;
  v_held integer := (new.state in ('leased', 'started'))::integer;
  v_was_open boolean;
  v_is_open boolean;
begin
  if tg_op = 'UPDATE' then
    v_ready := v_ready - (old.state = 'published')::integer;
    v_held := v_held - (old.state in ('leased', 'started'))::integer;
  end if;
  -- The dispatch row's lock guards its lanes.
  if v_held = 0 then
    perform 1 from app.dispatch
      where organization_id = new.organization_id and kind = new.kind
      for no key update;
  else
    update app.dispatch set held = held + v_held
      where organization_id = new.organization_id and kind = new.kind;
  end if;
  update app.dispatch_lanes
    set ready = ready + v_ready, held = held + v_held
    where organization_id = new.organization_id and kind = new.kind and agent_profile_id = new.agent_profile_id
    returning open, ready - v_ready > 0 and held - v_held < capacity into v_is_open, v_was_open;
  if not found then
    raise exception 'no dispatch lane of kind % for profile %', new.kind, new.agent_profile_id;
  end if;
  if v_was_open <> v_is_open then
    update app.dispatch
      set open_lanes = open_lanes + v_is_open::integer - v_was_open::integer
      where organization_id = new.organization_id and kind = new.kind;
  end if;
  return null;
end
$$;
