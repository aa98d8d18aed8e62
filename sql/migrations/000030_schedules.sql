-- Schedules, the tasks that they make, and what answers of people carry besides an option.
set local role runner_owner;

create table app.schedules (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  key text not null,
  title text not null,
  cron text not null,
  timezone text not null,
  status text not null default 'active',
  -- A task as its creation takes it, without what belongs to one fire.
  task_template jsonb not null,
  overlap text not null default 'skip',
  -- The fire that comes next. Only the transition that fires moves it on, under the row's lock: so each fire is one.
  next_run_at timestamptz,
  last_run_at timestamptz,
  last_task_id uuid,
  -- Since when its fires make no task for a reason that a person was told of; told once until it fires again.
  failing_since timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint schedules_pkey primary key (organization_id, id),
  constraint schedules_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint schedules_key_key unique (organization_id, key),
  constraint schedules_status_check check (status in ('active', 'paused')),
  constraint schedules_next_run_at_when_active_check check ((status = 'active') = (next_run_at is not null)),
  constraint schedules_overlap_check check (overlap in ('skip', 'allow')),
  constraint schedules_last_task_when_run_check check (last_task_id is null or last_run_at is not null),
  constraint schedules_key_check check (length(key) between 1 and 63),
  constraint schedules_title_check check (length(title) between 1 and 200),
  constraint schedules_task_template_check check (jsonb_typeof(task_template) = 'object')
) with (fillfactor = 80);
create index schedules_created_at_idx on app.schedules (organization_id, created_at, id);
-- What is due; read by the sweep over all organizations.
create index schedules_next_run_at_idx on app.schedules (next_run_at) where next_run_at is not null;
alter table app.schedules enable row level security;
alter table app.schedules force row level security;
create policy owner_all on app.schedules to runner_owner using (true) with check (true);
create policy scoped_all on app.schedules to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_read on app.schedules for select to runner_global using (true);
create policy tenant_read on app.schedules for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.schedules to runner_scoped;
grant select on app.schedules to runner_global, runner_api, runner_jobs;

-- Whose fire made the task. No foreign key: the task outlives its schedule.
alter table app.tasks add column schedule_id uuid;
create index tasks_schedule_id_idx on app.tasks (organization_id, schedule_id)
  where schedule_id is not null and status in ('pending', 'blocked', 'running', 'waiting');

alter table app.human_inbox_items
  -- What a person wrote besides the option that was chosen.
  add column note text,
  -- False: the answer is one of the options.
  add column allow_free_text boolean not null default true,
  -- The schedule that a notification is about. No foreign key: what was told stays told.
  add column schedule_id uuid,
  drop constraint human_inbox_items_purpose_check,
  add constraint human_inbox_items_purpose_check
    check (purpose in ('repair', 'budget', 'needs_input', 'prerequisite', 'agent', 'schedule')),
  add constraint human_inbox_items_note_when_responded_check check (note is null or status = 'responded'),
  add constraint human_inbox_items_responded_at_when_handled_check
    check ((status in ('responded', 'acknowledged')) = (responded_at is not null)),
  add constraint human_inbox_items_schedule_when_schedule_check check ((purpose = 'schedule') = (schedule_id is not null));
create unique index human_inbox_items_schedule_id_idx on app.human_inbox_items (organization_id, schedule_id)
  where status = 'open' and schedule_id is not null;

reset role;
