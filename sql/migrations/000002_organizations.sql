-- Organizations, their members, and the published template catalogs.
set local role runner_owner;

create table app.organizations (
  id uuid not null,
  slug text not null,
  name text not null,
  status text not null default 'active',
  onboarded_at timestamptz,
  work_dispatch_stopped_at timestamptz,
  root_uri text not null,
  authorization_epoch integer not null default 1,
  config jsonb not null,
  constraints jsonb not null,
  deleted_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint organizations_pkey primary key (id),
  constraint organizations_status_check check (status in ('onboarding', 'active', 'suspended')),
  constraint organizations_slug_check check (slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$' and length(slug) <= 63),
  constraint organizations_name_check check (length(name) between 1 and 200),
  constraint organizations_authorization_epoch_check check (authorization_epoch >= 1),
  constraint organizations_config_check check (jsonb_typeof(config) = 'object'),
  constraint organizations_constraints_check check (jsonb_typeof(constraints) = 'object')
);
-- A deleted organization's slug is free at once, although its rows are still being removed.
create unique index organizations_slug_idx on app.organizations (slug) where deleted_at is null;
create index organizations_created_at_idx on app.organizations (created_at desc, id desc) where deleted_at is null;
alter table app.organizations enable row level security;
alter table app.organizations force row level security;
create policy owner_all on app.organizations to runner_owner using (true) with check (true);
create policy scoped_all on app.organizations to runner_scoped
  using (id = (select app.current_organization())) with check (id = (select app.current_organization()));
create policy global_read on app.organizations for select to runner_global using (true);
create policy tenant_read on app.organizations for select to runner_api, runner_jobs
  using (id = (select app.current_organization()) and deleted_at is null);
grant select, insert, update, delete on app.organizations to runner_scoped;
grant select on app.organizations to runner_global, runner_api, runner_jobs;

create table app.organization_members (
  organization_id uuid not null,
  subject text not null,
  role text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint organization_members_pkey primary key (organization_id, subject),
  constraint organization_members_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint organization_members_role_check check (role in ('owner', 'viewer')),
  constraint organization_members_subject_check check (length(subject) between 1 and 255)
);
-- Serves "the organizations of this caller".
create index organization_members_subject_idx on app.organization_members (subject, organization_id);
alter table app.organization_members enable row level security;
alter table app.organization_members force row level security;
create policy owner_all on app.organization_members to runner_owner using (true) with check (true);
create policy scoped_all on app.organization_members to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_read on app.organization_members for select to runner_global using (true);
create policy tenant_read on app.organization_members for select to runner_api
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.organization_members to runner_scoped;
grant select on app.organization_members to runner_global, runner_api;

-- Not a tenant's: template catalogs are published once for all, and never changed or removed.
create table app.agent_catalogs (
  revision text not null,
  ordinal bigint generated always as identity,
  catalog jsonb not null,
  published_at timestamptz not null default now(),
  constraint agent_catalogs_pkey primary key (revision),
  constraint agent_catalogs_ordinal_key unique (ordinal),
  constraint agent_catalogs_revision_check check (revision ~ '^[0-9a-f]{64}$'),
  constraint agent_catalogs_catalog_check check (jsonb_typeof(catalog) = 'object')
);
create function app.agent_catalogs_keep() returns trigger
  language plpgsql set search_path = pg_catalog, pg_temp
  as $$
begin
  raise exception 'a published catalog is never changed or removed';
end
$$;
revoke all on function app.agent_catalogs_keep() from public;
create trigger agent_catalogs_keep before update or delete on app.agent_catalogs
  for each row execute function app.agent_catalogs_keep();
grant select, insert on app.agent_catalogs to runner_global;
grant select on app.agent_catalogs to runner_scoped, runner_api;

reset role;
