-- Organizations, which analysts read them, and their members.
set local role runner_owner;

create domain app.organization_status as text constraint organization_status_check
  check (value in ('onboarding', 'active', 'suspended'));

create table app.organizations (
  id uuid not null,
  slug text not null,
  name text not null,
  status app.organization_status not null default 'active',
  root_uri text not null,
  config jsonb not null,
  constraints jsonb not null,
  authorization_epoch integer not null default 1,
  onboarded_at timestamptz,
  work_dispatch_stopped_at timestamptz,
  deleted_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint organizations_pkey primary key (id),
  constraint organizations_slug_check check (slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$' and length(slug) <= 63),
  constraint organizations_name_check check (length(name) between 1 and 200),
  constraint organizations_authorization_epoch_check check (authorization_epoch >= 1),
  constraint organizations_config_check check (jsonb_typeof(config) = 'object'),
  constraint organizations_constraints_check check (jsonb_typeof(constraints) = 'object')
);
-- A deleted organization's slug is free at once, although its rows are still being removed.
create unique index organizations_slug_idx on app.organizations (slug) where deleted_at is null;
create index organizations_created_at_idx on app.organizations (created_at desc, id desc) where deleted_at is null;
create index organizations_deleted_at_idx on app.organizations (deleted_at) where deleted_at is not null;

-- A name outlives its login: dropped by hand, or by the command in another database of the server, it leaves its grants here,
-- for the next login of that name. The number of a role is not given again to one of the same name, so it says
-- whose the grants are.
-- Not a tenant's: a login may be given every organization, also those to come.
create table app.analysts (
  login text not null,
  login_oid bigint not null,
  all_organizations boolean not null default false,
  created_at timestamptz not null default now(),
  constraint analysts_pkey primary key (login),
  constraint analysts_login_check check (login ~ '^[a-z][a-z0-9_]*$' and length(login) <= 63)
);

grant select, insert, update, delete on app.analysts to runner_global;
grant select on app.analysts to runner_report;

comment on table app.analysts is
  'Logins made for analysts. The logins themselves, and their passwords, are Postgres''s.';
comment on column app.analysts.login is 'Name of the login.';
comment on column app.analysts.login_oid is
  'Number of the login when it was given this; another one of its name is given nothing by it.';
comment on column app.analysts.all_organizations is 'Reads every organization, also those that are made later.';
comment on column app.analysts.created_at is 'When the login was made.';

create table app.analyst_grants (
  organization_id uuid not null,
  login text not null,
  login_oid bigint not null,
  created_at timestamptz not null default now(),
  constraint analyst_grants_pkey primary key (organization_id, login),
  constraint analyst_grants_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint analyst_grants_login_check check (login ~ '^[a-z][a-z0-9_]*$' and length(login) <= 63)
);
create index analyst_grants_login_idx on app.analyst_grants (login, login_oid, organization_id);

alter table app.analyst_grants enable row level security;
alter table app.analyst_grants force row level security;
create policy owner_all on app.analyst_grants to runner_owner using (true) with check (true);
create policy global_all on app.analyst_grants to runner_global using (true) with check (true);
create policy report_read on app.analyst_grants for select to runner_report
  using (login = session_user::text and login_oid = to_regrole(quote_ident(session_user))::oid::bigint);
grant select, insert, delete on app.analyst_grants to runner_global;
grant select on app.analyst_grants to runner_report;

comment on table app.analyst_grants is 'Which organizations the login of an analyst reads.';
comment on column app.analyst_grants.organization_id is 'The organization.';
comment on column app.analyst_grants.login is 'Name of the login.';
comment on column app.analyst_grants.login_oid is
  'Number of the login when it was given this; another one of its name is given nothing by it.';
comment on column app.analyst_grants.created_at is 'When it was given.';

alter table app.organizations enable row level security;
alter table app.organizations force row level security;
create policy owner_all on app.organizations to runner_owner using (true) with check (true);
create policy scoped_all on app.organizations to runner_scoped
  using (id = (select app.current_organization())) with check (id = (select app.current_organization()));
create policy global_read on app.organizations for select to runner_global using (true);
create policy tenant_read on app.organizations for select to runner_api, runner_jobs
  using (id = (select app.current_organization()) and deleted_at is null);
create policy admin_read on app.organizations for select to runner_admin
  using (deleted_at is null
    and ((select app.current_organization()) is null or id = (select app.current_organization())));
-- The one place that decides. An operator, who may become runner_report, sees all; a deleted organization nobody. Any other
-- table shows the rows of the organizations that can be seen: `= any (array(…))` is asked once a statement and uses indexes.
create policy report_read on app.organizations for select to runner_report
  using (app.report_shows(id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and deleted_at is null);
grant select, insert, update, delete on app.organizations to runner_scoped;
grant select on app.organizations to runner_global, runner_api, runner_jobs;
grant select (id, slug, name, status, root_uri, config, constraints, authorization_epoch, onboarded_at,
  work_dispatch_stopped_at, deleted_at, created_at, updated_at)
  on app.organizations to runner_admin;
grant select (id, slug, name, status, config, onboarded_at, work_dispatch_stopped_at, deleted_at, created_at,
  updated_at)
  on app.organizations to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.organizations alter slug set statistics 0, alter name set statistics 0, alter config set statistics 0,
  alter constraints set statistics 0;

comment on table app.organizations is 'Tenants. Everything else belongs to one of them.';
comment on column app.organizations.id is 'Chosen by who creates it.';
comment on column app.organizations.slug is 'Stable name in addresses; unique among those that are not deleted.';
comment on column app.organizations.name is 'For people.';
comment on column app.organizations.status is
  'onboarding: until its onboarding is completed. suspended: reads work, nothing is handed out.';
comment on column app.organizations.root_uri is 'Root of its memory, a logical address.';
comment on column app.organizations.config is 'Time zone, departments, limits and root of storage.';
comment on column app.organizations.constraints is
  'Allowed integrations, blocked domains, and the risks that need an approval.';
comment on column app.organizations.authorization_epoch is
  'Rises whenever what agents may do changes; their reads are fenced by it.';
comment on column app.organizations.onboarded_at is 'When its onboarding was completed.';
comment on column app.organizations.work_dispatch_stopped_at is
  'Since when its owner has stopped work dispatch; null otherwise.';
comment on column app.organizations.deleted_at is
  'When it was deleted: hidden from then on, its rows are removed in the background.';
comment on column app.organizations.created_at is 'When it was made.';
comment on column app.organizations.updated_at is 'When it was last changed.';

-- Organizations that are being deleted: hidden at once, whoever asks, although their rows go later.
create function app.organizations_deleted() returns uuid[]
  language sql stable security definer parallel safe set search_path = pg_catalog, pg_temp
  as $$
    select coalesce(array_agg(o.id), '{}') from app.organizations o where o.deleted_at is not null
  $$;
revoke all on function app.organizations_deleted() from public;
grant execute on function app.organizations_deleted() to runner_admin;
-- A function's owner needs CREATE on its schema at the moment it becomes the owner.
reset role;
grant create on schema app to runner_global;
alter function app.organizations_deleted() owner to runner_global;
revoke create on schema app from runner_global;
set local role runner_owner;

create domain app.organization_member_role as text constraint organization_member_role_check
  check (value in ('owner', 'viewer'));

create table app.organization_members (
  organization_id uuid not null,
  subject text not null,
  role app.organization_member_role not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint organization_members_pkey primary key (organization_id, subject),
  constraint organization_members_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
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
create policy admin_read on app.organization_members for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
grant select, insert, update, delete on app.organization_members to runner_scoped;
grant select on app.organization_members to runner_global, runner_api;
grant select (organization_id, subject, role, created_at, updated_at)
  on app.organization_members to runner_admin;

comment on table app.organization_members is 'Whose tokens reach an organization, where owners sign in with JWTs.';
comment on column app.organization_members.organization_id is 'The organization it belongs to.';
comment on column app.organization_members.subject is 'The `sub` of the token.';
comment on column app.organization_members.role is 'viewers read only.';
comment on column app.organization_members.created_at is 'When it was made.';
comment on column app.organization_members.updated_at is 'When it was last changed.';

reset role;
