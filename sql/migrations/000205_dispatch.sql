-- Exact counters of what is ready and held, by organization and by lane, so that a pull never counts rows.
set local role runner_owner;

create domain app.run_kind as text constraint run_kind_check check (value in ('task', 'chat'));

create table app.dispatch (
  organization_id uuid not null,
  kind app.run_kind not null,
  capacity integer not null,
  held integer not null default 0,
  open_lanes integer not null default 0,
  -- Work dispatch is stopped: nothing new is published, what is published may still be taken.
  stopped boolean not null default false,
  -- Nothing at all is handed out (suspended or deleted organization).
  suspended boolean not null default false,
  -- When this organization was last served; the longest unserved comes first.
  served_at timestamptz not null default clock_timestamp(),
  open boolean not null generated always as (not suspended and open_lanes > 0 and held < capacity) stored,
  constraint dispatch_pkey primary key (organization_id, kind),
  constraint dispatch_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint dispatch_counters_check check (capacity >= 0 and held >= 0 and open_lanes >= 0)
) with (fillfactor = 50);
create index dispatch_served_at_idx on app.dispatch (served_at, organization_id, kind) where open;
create trigger dispatch_wake after update of capacity, suspended on app.dispatch
  for each row when (new.open and (new.capacity > old.capacity or old.suspended)) execute function app.dispatch_wake();

alter table app.dispatch enable row level security;
alter table app.dispatch force row level security;
create policy owner_all on app.dispatch to runner_owner using (true) with check (true);
create policy scoped_all on app.dispatch to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_all on app.dispatch to runner_global using (true) with check (true);
create policy tenant_read on app.dispatch for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy admin_read on app.dispatch for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
grant select, insert, update, delete on app.dispatch to runner_scoped;
grant select, update on app.dispatch to runner_global;
grant select on app.dispatch to runner_api, runner_jobs;
grant select (organization_id, kind, capacity, held, open_lanes, stopped, suspended, served_at, open)
  on app.dispatch to runner_admin;

comment on table app.dispatch is 'Counters of what is held of an organization, by which pulls go.';
comment on column app.dispatch.organization_id is 'The organization it belongs to.';
comment on column app.dispatch.kind is 'Tasks and chat turns have capacities of their own.';
comment on column app.dispatch.capacity is 'How many requests may be held at once.';
comment on column app.dispatch.held is 'How many are leased or started.';
comment on column app.dispatch.open_lanes is 'Profiles with something to take.';
comment on column app.dispatch.stopped is 'Work dispatch is stopped by the owner or held by an onboarding: nothing new is published.';
comment on column app.dispatch.suspended is 'Nothing is handed out.';
comment on column app.dispatch.served_at is 'When it was last served: who waited longest comes first.';
comment on column app.dispatch.open is 'Whether a pull may take something.';

create table app.dispatch_lanes (
  organization_id uuid not null,
  agent_profile_id uuid not null,
  kind app.run_kind not null,
  capacity integer not null,
  ready integer not null default 0,
  held integer not null default 0,
  open boolean not null generated always as (ready > 0 and held < capacity) stored,
  constraint dispatch_lanes_pkey primary key (organization_id, kind, agent_profile_id),
  constraint dispatch_lanes_agent_profile_id_fkey foreign key (organization_id, agent_profile_id)
    references app.agent_profiles (organization_id, id) on delete cascade,
  constraint dispatch_lanes_counters_check check (capacity >= 0 and ready >= 0 and held >= 0)
) with (fillfactor = 50);
create index dispatch_lanes_agent_profile_id_idx on app.dispatch_lanes (organization_id, agent_profile_id);
create trigger dispatch_lanes_wake after update of capacity on app.dispatch_lanes
  for each row when (new.open and new.capacity > old.capacity) execute function app.dispatch_wake();

alter table app.dispatch_lanes enable row level security;
alter table app.dispatch_lanes force row level security;
create policy owner_all on app.dispatch_lanes to runner_owner using (true) with check (true);
create policy scoped_all on app.dispatch_lanes to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_all on app.dispatch_lanes to runner_global using (true) with check (true);
create policy tenant_read on app.dispatch_lanes for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy admin_read on app.dispatch_lanes for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
grant select, insert, update, delete on app.dispatch_lanes to runner_scoped;
grant select, update on app.dispatch_lanes to runner_global;
grant select on app.dispatch_lanes to runner_api, runner_jobs;
grant select (organization_id, agent_profile_id, kind, capacity, ready, held, open)
  on app.dispatch_lanes to runner_admin;

comment on table app.dispatch_lanes is 'The same counters for each profile.';
comment on column app.dispatch_lanes.organization_id is 'The organization it belongs to.';
comment on column app.dispatch_lanes.agent_profile_id is 'The profile.';
comment on column app.dispatch_lanes.kind is 'Tasks or chat turns.';
comment on column app.dispatch_lanes.capacity is 'How many requests of it may be held at once.';
comment on column app.dispatch_lanes.ready is 'How many are published.';
comment on column app.dispatch_lanes.held is 'How many are leased or started.';
comment on column app.dispatch_lanes.open is 'Whether a pull may take something.';

-- One row that pulls pass through one by one: they would only skip each other's organizations.
create table app.pull_gate (
  only_row boolean not null default true,
  constraint pull_gate_pkey primary key (only_row),
  constraint pull_gate_only_row_check check (only_row)
);
insert into app.pull_gate default values;
grant select, update on app.pull_gate to runner_global;

comment on table app.pull_gate is 'One row that pulls pass through one by one.';
comment on column app.pull_gate.only_row is 'Always true.';

reset role;
