-- The published template catalogs, and the profiles of organizations.
set local role runner_owner;

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

create trigger agent_catalogs_keep before update or delete on app.agent_catalogs
  for each row execute function app.agent_catalogs_keep();

grant select, insert on app.agent_catalogs to runner_global;
grant select on app.agent_catalogs to runner_scoped, runner_api;
grant select (revision, ordinal, catalog, published_at)
  on app.agent_catalogs to runner_admin;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.agent_catalogs alter catalog set statistics 0;

comment on table app.agent_catalogs is
  'Published catalogs of profile templates, for all organizations; never changed or removed. The newest is current.';
comment on column app.agent_catalogs.revision is 'SHA-256 of its canonical JSON, in hex.';
comment on column app.agent_catalogs.ordinal is 'The order of publication.';
comment on column app.agent_catalogs.catalog is 'The templates and what they share.';
comment on column app.agent_catalogs.published_at is 'When it was published.';

create domain app.agent_profile_kind as text constraint agent_profile_kind_check
  check (value in ('operator', 'chat', 'department'));
create domain app.agent_profile_status as text constraint agent_profile_status_check
  check (value in ('enabled', 'disabled'));
create domain app.department as text constraint department_check check (value in ('growth', 'engineering', 'support'));

create table app.agent_profiles (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  key text not null,
  name text not null,
  kind app.agent_profile_kind not null,
  department app.department,
  status app.agent_profile_status not null default 'enabled',
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
  constraint agent_profiles_department_when_department_check check ((kind = 'department') = (department is not null)),
  constraint agent_profiles_key_check check (key ~ '^[a-z0-9]+(-[a-z0-9]+)*$' and length(key) <= 63),
  constraint agent_profiles_name_check check (length(name) between 1 and 200),
  constraint agent_profiles_disabled_when_deleted_check check (deleted_at is null or status = 'disabled'),
  constraint agent_profiles_config_check check (jsonb_typeof(config) = 'object')
);
create unique index agent_profiles_key_idx on app.agent_profiles (organization_id, key) where deleted_at is null;
create index agent_profiles_created_at_idx on app.agent_profiles (organization_id, created_at desc, id desc);
-- Beside the unique one: a key may have been that of several profiles that are deleted.
create index agent_profiles_all_key_idx on app.agent_profiles (organization_id, key);

create trigger agent_profiles_wake after update of key on app.agent_profiles
  for each row when (new.key <> old.key) execute function app.agent_profiles_wake();

alter table app.agent_profiles enable row level security;
alter table app.agent_profiles force row level security;
create policy owner_all on app.agent_profiles to runner_owner using (true) with check (true);
create policy scoped_all on app.agent_profiles to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_read on app.agent_profiles for select to runner_global using (true);
create policy tenant_read on app.agent_profiles for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy admin_read on app.agent_profiles for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy report_read on app.agent_profiles for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.agent_profiles to runner_scoped;
grant select on app.agent_profiles to runner_global, runner_api, runner_jobs;
grant select (organization_id, id, key, name, kind, department, status, root_uri, instructions_uri, config,
  tool_policy_narrowed, deleted_at, created_at, updated_at)
  on app.agent_profiles to runner_admin;
grant select (organization_id, id, key, name, kind, department, status, config, deleted_at, created_at, updated_at)
  on app.agent_profiles to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.agent_profiles alter key set statistics 0, alter name set statistics 0, alter config set statistics 0;

comment on table app.agent_profiles is 'The agents of an organization.';
comment on column app.agent_profiles.organization_id is 'The organization it belongs to.';
comment on column app.agent_profiles.id is 'Id of the profile.';
comment on column app.agent_profiles.key is 'Stable name; unique in the organization.';
comment on column app.agent_profiles.name is 'For people.';
comment on column app.agent_profiles.kind is 'operator: anything. chat: replies in chats. department: its own tasks.';
comment on column app.agent_profiles.department is 'Of department profiles.';
comment on column app.agent_profiles.status is 'disabled: it is given no work.';
comment on column app.agent_profiles.root_uri is 'Root of its files, a logical address.';
comment on column app.agent_profiles.instructions_uri is 'Its instructions, a logical address.';
comment on column app.agent_profiles.config is
  'Run mode, capacity, tools, skills, model, and the template it was made from.';
comment on column app.agent_profiles.tool_policy_narrowed is
  'A person took tool policies away: provisioning never brings them back.';
comment on column app.agent_profiles.deleted_at is 'When it was deleted; its history stays.';
comment on column app.agent_profiles.created_at is 'When it was made.';
comment on column app.agent_profiles.updated_at is 'When it was last changed.';

reset role;
