set local role runner_owner;

create table app.agent_profiles (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  key text not null,
  name text not null,
  kind text not null,
  department text,
  status text not null default 'enabled',
  root_uri text not null,
  instructions_uri text not null,
  config jsonb not null,
  -- Provisioning found fewer tool policies than the template of that time named. It has to be remembered: a later
  -- template may name no more than what was left, and one after it must still not bring back what a person took away.
  tool_policy_narrowed boolean not null default false,
  deleted_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint agent_profiles_pkey primary key (organization_id, id),
  constraint agent_profiles_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint agent_profiles_kind_check check (kind in ('operator', 'chat', 'department')),
  constraint agent_profiles_status_check check (status in ('enabled', 'disabled')),
  constraint agent_profiles_department_check check (department in ('growth', 'engineering', 'support')),
  constraint agent_profiles_department_when_department_check check ((kind = 'department') = (department is not null)),
  constraint agent_profiles_key_check check (key ~ '^[a-z0-9]+(-[a-z0-9]+)*$' and length(key) <= 63),
  constraint agent_profiles_name_check check (length(name) between 1 and 200),
  constraint agent_profiles_disabled_when_deleted_check check (deleted_at is null or status = 'disabled'),
  constraint agent_profiles_config_check check (jsonb_typeof(config) = 'object')
);
create unique index agent_profiles_key_idx on app.agent_profiles (organization_id, key) where deleted_at is null;
create index agent_profiles_created_at_idx on app.agent_profiles (organization_id, created_at desc, id desc)
  where deleted_at is null;
alter table app.agent_profiles enable row level security;
alter table app.agent_profiles force row level security;
create policy owner_all on app.agent_profiles to runner_owner using (true) with check (true);
create policy scoped_all on app.agent_profiles to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_read on app.agent_profiles for select to runner_global using (true);
create policy tenant_read on app.agent_profiles for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.agent_profiles to runner_scoped;
grant select on app.agent_profiles to runner_global, runner_api, runner_jobs;

reset role;
