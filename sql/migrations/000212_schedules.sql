-- Schedules, and the tasks that they make.
set local role runner_owner;

create domain app.schedule_status as text constraint schedule_status_check check (value in ('active', 'paused'));
create domain app.schedule_overlap as text constraint schedule_overlap_check check (value in ('skip', 'allow'));

create table app.schedules (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  key text not null,
  title text not null,
  cron text not null,
  timezone text not null,
  status app.schedule_status not null default 'active',
  -- A task as its creation takes it, without what belongs to one fire.
  task_template jsonb not null,
  overlap app.schedule_overlap not null default 'skip',
  -- Of what the schedule is. Fires leave it, or nobody could change a schedule that fires each minute.
  version integer not null default 1,
  -- The fire that comes next. Only the transition that fires moves it on, under the row's lock: so each fire is one.
  next_run_at timestamptz,
  last_run_at timestamptz,
  last_task_id uuid,
  -- Since when its fires make no task for a reason that the inbox shows, once until it fires again.
  failing_since timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint schedules_pkey primary key (organization_id, id),
  constraint schedules_key_key unique (organization_id, key),
  constraint schedules_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint schedules_next_run_at_when_active_check check ((status = 'active') = (next_run_at is not null)),
  constraint schedules_last_task_when_run_check check (last_task_id is null or last_run_at is not null),
  constraint schedules_version_check check (version >= 1),
  constraint schedules_key_check check (length(key) between 1 and 63),
  constraint schedules_title_check check (length(title) between 1 and 200),
  constraint schedules_task_template_check check (jsonb_typeof(task_template) = 'object')
) with (fillfactor = 80);
create index schedules_created_at_idx on app.schedules (organization_id, created_at, id);
-- What is due; read by the sweep, as what is due of run requests.
create index schedules_next_run_at_idx on app.schedules (next_run_at) where next_run_at is not null;
create index schedules_next_run_at_turns_idx on app.schedules (organization_id, next_run_at) where next_run_at is not null;

alter table app.schedules enable row level security;
alter table app.schedules force row level security;
create policy owner_all on app.schedules to runner_owner using (true) with check (true);
create policy scoped_all on app.schedules to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_read on app.schedules for select to runner_global using (true);
create policy tenant_read on app.schedules for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy admin_read on app.schedules for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy report_read on app.schedules for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.schedules to runner_scoped;
grant select on app.schedules to runner_global, runner_api, runner_jobs;
grant select (organization_id, id, key, title, cron, timezone, status, task_template, overlap, version,
  next_run_at, last_run_at, last_task_id, failing_since, created_at, updated_at)
  on app.schedules to runner_admin;
grant select (organization_id, id, key, title, cron, timezone, status, overlap, next_run_at, last_run_at,
  last_task_id, failing_since, created_at, updated_at)
  on app.schedules to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.schedules alter key set statistics 0, alter title set statistics 0, alter cron set statistics 0,
  alter timezone set statistics 0, alter task_template set statistics 0;

comment on table app.schedules is 'Tasks made by the clock.';
comment on column app.schedules.organization_id is 'The organization it belongs to.';
comment on column app.schedules.id is 'Id of the schedule.';
comment on column app.schedules.key is 'Stable name; unique in the organization.';
comment on column app.schedules.title is 'For people.';
comment on column app.schedules.cron is 'When it fires, in five fields.';
comment on column app.schedules.timezone is 'The IANA zone of those fields.';
comment on column app.schedules.status is 'paused: it does not fire, and nothing is made up for.';
comment on column app.schedules.task_template is 'The task that a fire makes.';
comment on column app.schedules.overlap is 'skip: no task while one of its tasks is open.';
comment on column app.schedules.version is 'Raised by every change of what it is: not by fires, pauses and resumes.';
comment on column app.schedules.next_run_at is 'When it fires next; null while it is paused.';
comment on column app.schedules.last_run_at is 'When it fired last.';
comment on column app.schedules.last_task_id is 'The task it made last.';
comment on column app.schedules.failing_since is 'Since when its fires can make no task.';
comment on column app.schedules.created_at is 'When it was made.';
comment on column app.schedules.updated_at is 'When it was last changed.';

reset role;
