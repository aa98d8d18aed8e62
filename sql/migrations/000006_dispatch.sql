-- Exact counters of what is ready and held, by organization and by lane, so that a pull never counts rows.
set local role runner_owner;

create table app.dispatch (
  organization_id uuid not null,
  kind text not null,
  capacity integer not null,
  held integer not null default 0,
  open_lanes integer not null default 0,
  -- Work dispatch is stopped: nothing new is published, what is published may still be taken.
  stopped boolean not null default false,
  -- Nothing at all is handed out (suspended or deleted organization).
  suspended boolean not null default false,
  -- When this organization was last served; the longest unserved comes first.
  turn timestamptz not null default clock_timestamp(),
  open boolean not null generated always as (not suspended and open_lanes > 0 and held < capacity) stored,
  constraint dispatch_pkey primary key (organization_id, kind),
  constraint dispatch_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint dispatch_kind_check check (kind in ('task', 'chat')),
  constraint dispatch_counters_check check (capacity >= 0 and held >= 0 and open_lanes >= 0)
) with (fillfactor = 50);
create index dispatch_turn_idx on app.dispatch (turn, organization_id, kind) where open;
alter table app.dispatch enable row level security;
alter table app.dispatch force row level security;
create policy owner_all on app.dispatch to runner_owner using (true) with check (true);
create policy scoped_all on app.dispatch to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_all on app.dispatch to runner_global using (true) with check (true);
create policy tenant_read on app.dispatch for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.dispatch to runner_scoped;
grant select, update on app.dispatch to runner_global;
grant select on app.dispatch to runner_api, runner_jobs;

create table app.dispatch_lanes (
  organization_id uuid not null,
  agent_profile_id uuid not null,
  kind text not null,
  capacity integer not null,
  ready integer not null default 0,
  held integer not null default 0,
  open boolean not null generated always as (ready > 0 and held < capacity) stored,
  constraint dispatch_lanes_pkey primary key (organization_id, kind, agent_profile_id),
  constraint dispatch_lanes_agent_profile_id_fkey foreign key (organization_id, agent_profile_id)
    references app.agent_profiles (organization_id, id) on delete cascade,
  constraint dispatch_lanes_kind_check check (kind in ('task', 'chat')),
  constraint dispatch_lanes_counters_check check (capacity >= 0 and ready >= 0 and held >= 0)
) with (fillfactor = 50);
create index dispatch_lanes_agent_profile_id_idx on app.dispatch_lanes (organization_id, agent_profile_id);
alter table app.dispatch_lanes enable row level security;
alter table app.dispatch_lanes force row level security;
create policy owner_all on app.dispatch_lanes to runner_owner using (true) with check (true);
create policy scoped_all on app.dispatch_lanes to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_all on app.dispatch_lanes to runner_global using (true) with check (true);
create policy tenant_read on app.dispatch_lanes for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.dispatch_lanes to runner_scoped;
grant select, update on app.dispatch_lanes to runner_global;
grant select on app.dispatch_lanes to runner_api, runner_jobs;

-- One row that pulls pass through one by one: they would only skip each other's organizations.
create table app.pull_gate (
  only_row boolean not null default true,
  constraint pull_gate_pkey primary key (only_row),
  constraint pull_gate_only_row_check check (only_row)
);
insert into app.pull_gate default values;
grant select, update on app.pull_gate to runner_global;

-- Keeps the counters equal to the rows whatever function moves a request. Deferred to the commit, so that the
-- dispatch row (the hottest one of an organization) is the last lock of every transaction. A pull, which locks the
-- dispatch row first and moves many requests, counts for itself: published → leased is left to it.
create function app.run_requests_count() returns trigger
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $$
declare
  v_ready integer := (new.state = 'published')::integer;
  v_held integer := (new.state in ('leased', 'started'))::integer;
  v_was_open boolean;
  v_is_open boolean;
begin
  if tg_op = 'UPDATE' then
    v_ready := v_ready - (old.state = 'published')::integer;
    v_held := v_held - (old.state in ('leased', 'started'))::integer;
  end if;
  perform set_config('app.organization_id', new.organization_id::text, true);
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
revoke all on function app.run_requests_count() from public;
reset role;
-- A function's owner needs CREATE on its schema at the moment it becomes the owner.
grant create on schema app to runner_scoped;
alter function app.run_requests_count() owner to runner_scoped;
-- The trigger is made by the table's owner, who needs EXECUTE for that moment alone.
grant execute on function app.run_requests_count() to runner_owner;
revoke create on schema app from runner_scoped;
set local role runner_owner;
create constraint trigger run_requests_count_insert after insert on app.run_requests
  deferrable initially deferred for each row
  when (new.state in ('published', 'leased', 'started'))
  execute function app.run_requests_count();
create constraint trigger run_requests_count_update after update of state on app.run_requests
  deferrable initially deferred for each row
  when (old.state is distinct from new.state
        and not (old.state = 'published' and new.state = 'leased')
        and ((old.state = 'published') <> (new.state = 'published')
             or (old.state in ('leased', 'started')) <> (new.state in ('leased', 'started'))))
  execute function app.run_requests_count();

reset role;
