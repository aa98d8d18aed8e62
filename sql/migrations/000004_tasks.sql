-- Tasks, their dependency edges, their numbers and their uploaded inputs.
set local role runner_owner;

create table app.tasks (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  identifier_scope text not null,
  identifier_number integer not null,
  parent_id uuid,
  root_task_id uuid not null,
  depth integer not null default 0,
  owner_agent_profile_id uuid not null,
  source_chat_id uuid,
  source_message_id uuid,
  kind text not null,
  status text not null,
  phase text not null,
  title text not null,
  priority integer not null default 0,
  version integer not null default 1,
  -- Only a root's counts; a child shows its root's.
  graph_revision integer not null default 1,
  agent_run_count integer not null default 0,
  consumed_agent_run_count integer not null default 0,
  replan_count integer not null default 0,
  completion_revision integer not null default 0,
  created_by_run_id uuid,
  spec jsonb not null,
  blockers jsonb not null default '[]',
  active_run_id uuid,
  -- Failures of the formal contract in this phase: {failures, runId, checks}.
  contract jsonb,
  -- What people answered, for the next run.
  answers jsonb not null default '[]',
  waiting_until timestamptz,
  waiting_reason text,
  error jsonb,
  result jsonb,
  -- The task whose failure failed or cancelled this one; itself, where it is the origin. Null: a person did it.
  failure_origin_id uuid,
  dedupe_key text not null,
  scheduled_at timestamptz,
  due_at timestamptz,
  -- Sort key of due_at: tasks without one come last.
  due_order timestamptz not null generated always as (coalesce(due_at, '9999-12-31 00:00:00+00'::timestamptz)) stored,
  started_at timestamptz,
  completed_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint tasks_pkey primary key (organization_id, id),
  constraint tasks_identifier_key unique (organization_id, identifier_scope, identifier_number),
  constraint tasks_parent_id_fkey foreign key (organization_id, parent_id)
    references app.tasks (organization_id, id) on delete no action,
  constraint tasks_root_task_id_fkey foreign key (organization_id, root_task_id)
    references app.tasks (organization_id, id) on delete no action,
  constraint tasks_owner_agent_profile_id_fkey foreign key (organization_id, owner_agent_profile_id)
    references app.agent_profiles (organization_id, id) on delete no action,
  constraint tasks_identifier_scope_check check (identifier_scope in ('T', 'I')),
  constraint tasks_kind_check check (kind in ('task', 'initiative')),
  constraint tasks_scope_of_kind_check check ((kind = 'task') = (identifier_scope = 'T')),
  constraint tasks_status_check
    check (status in ('pending', 'blocked', 'running', 'waiting', 'completed', 'failed', 'cancelled')),
  constraint tasks_phase_check check (phase in ('plan', 'execute', 'verify', 'closed')),
  constraint tasks_closed_when_over_check check ((phase = 'closed') = (status in ('completed', 'failed', 'cancelled'))),
  constraint tasks_blocked_when_blockers_check check ((status = 'blocked') = (blockers <> '[]'::jsonb)),
  constraint tasks_running_when_active_run_check check ((status = 'running') = (active_run_id is not null)),
  constraint tasks_waiting_when_until_check check ((status = 'waiting') = (waiting_until is not null)),
  constraint tasks_completed_at_when_completed_check check ((status = 'completed') = (completed_at is not null)),
  constraint tasks_failure_origin_when_over_check
    check (failure_origin_id is null or status in ('failed', 'cancelled')),
  constraint tasks_origin_when_failed_check check (status <> 'failed' or failure_origin_id is not null),
  constraint tasks_root_when_no_parent_check check ((parent_id is null) = (root_task_id = id)),
  constraint tasks_depth_check check (depth >= 0 and (depth = 0) = (parent_id is null)),
  constraint tasks_counters_check check (
    version >= 1 and graph_revision >= 1 and agent_run_count >= 0 and replan_count >= 0 and completion_revision >= 0
    and consumed_agent_run_count >= agent_run_count),
  constraint tasks_title_check check (length(title) between 1 and 200),
  constraint tasks_dedupe_key_check check (length(dedupe_key) between 1 and 200),
  constraint tasks_spec_check check (jsonb_typeof(spec) = 'object'),
  constraint tasks_blockers_check check (jsonb_typeof(blockers) = 'array')
);
-- An open task with the same key is answered instead of making a second one.
create unique index tasks_open_dedupe_key_idx on app.tasks (organization_id, dedupe_key)
  where status in ('pending', 'blocked', 'running', 'waiting');
create index tasks_created_at_idx on app.tasks (organization_id, created_at, id);
create index tasks_updated_at_idx on app.tasks (organization_id, updated_at, id);
create index tasks_priority_idx on app.tasks (organization_id, priority, id);
create index tasks_due_order_idx on app.tasks (organization_id, due_order, id);
create index tasks_identifier_number_idx on app.tasks (organization_id, identifier_number, id);
create index tasks_status_idx on app.tasks (organization_id, status, created_at, id);
create index tasks_owner_agent_profile_id_idx on app.tasks (organization_id, owner_agent_profile_id, created_at, id);
create index tasks_root_task_id_idx on app.tasks (organization_id, root_task_id, created_at, id);
create index tasks_parent_id_idx on app.tasks (organization_id, parent_id, created_at, id) where parent_id is not null;
create index tasks_source_chat_id_idx on app.tasks (organization_id, source_chat_id, created_at, id)
  where source_chat_id is not null;
-- What time alone unblocks; read by the sweep over all organizations.
create index tasks_waiting_until_idx on app.tasks (waiting_until) where status = 'waiting';
create index tasks_scheduled_at_idx on app.tasks (scheduled_at) where status = 'blocked' and scheduled_at is not null;

-- The version rises with every change of the task, whoever makes it. What its own creation still does to it in the
-- same transaction (edges, blockers) is part of that first version.
create function app.tasks_raise_version() returns trigger
  language plpgsql set search_path = pg_catalog, pg_temp
  as $$
begin
  -- A generated column is still null here, and would make every update a change; Postgres fills it in after this.
  new.due_order := old.due_order;
  if new is distinct from old and not (old.version = 1 and old.created_at = now()) then
    new.version := old.version + 1;
    new.updated_at := greatest(clock_timestamp(), old.updated_at);
  end if;
  return new;
end
$$;
revoke all on function app.tasks_raise_version() from public;
create trigger tasks_raise_version before update on app.tasks
  for each row execute function app.tasks_raise_version();

alter table app.tasks enable row level security;
alter table app.tasks force row level security;
create policy owner_all on app.tasks to runner_owner using (true) with check (true);
create policy scoped_all on app.tasks to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_read on app.tasks for select to runner_global using (true);
create policy tenant_read on app.tasks for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.tasks to runner_scoped;
grant select on app.tasks to runner_global, runner_api, runner_jobs;

create table app.task_dependencies (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  task_id uuid not null,
  depends_on_task_id uuid not null,
  -- Roots never change; kept here so that the roots a transition has to lock are found by one index.
  root_task_id uuid not null,
  depends_on_root_task_id uuid not null,
  required boolean not null default true,
  created_at timestamptz not null default now(),
  constraint task_dependencies_pkey primary key (organization_id, id),
  constraint task_dependencies_task_id_depends_on_task_id_key unique (organization_id, task_id, depends_on_task_id),
  constraint task_dependencies_task_id_fkey foreign key (organization_id, task_id)
    references app.tasks (organization_id, id) on delete cascade,
  constraint task_dependencies_depends_on_task_id_fkey foreign key (organization_id, depends_on_task_id)
    references app.tasks (organization_id, id) on delete cascade,
  constraint task_dependencies_no_loop_check check (task_id <> depends_on_task_id)
);
create index task_dependencies_depends_on_task_id_idx
  on app.task_dependencies (organization_id, depends_on_task_id, task_id);
create index task_dependencies_depends_on_root_task_id_idx
  on app.task_dependencies (organization_id, depends_on_root_task_id, root_task_id)
  where root_task_id <> depends_on_root_task_id;
create index task_dependencies_created_at_idx on app.task_dependencies (organization_id, task_id, created_at, id);
alter table app.task_dependencies enable row level security;
alter table app.task_dependencies force row level security;
create policy owner_all on app.task_dependencies to runner_owner using (true) with check (true);
create policy scoped_all on app.task_dependencies to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.task_dependencies for select to runner_api
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.task_dependencies to runner_scoped;
grant select on app.task_dependencies to runner_api;

create table app.task_identifiers (
  organization_id uuid not null,
  scope text not null,
  last_number integer not null default 0,
  constraint task_identifiers_pkey primary key (organization_id, scope),
  constraint task_identifiers_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint task_identifiers_last_number_check check (last_number >= 0)
);
alter table app.task_identifiers enable row level security;
alter table app.task_identifiers force row level security;
create policy owner_all on app.task_identifiers to runner_owner using (true) with check (true);
create policy scoped_all on app.task_identifiers to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.task_identifiers to runner_scoped;

create table app.task_inputs (
  organization_id uuid not null,
  task_id uuid not null,
  path text not null,
  storage_key text not null,
  size bigint not null,
  sha256 text not null,
  media_type text not null,
  created_at timestamptz not null default now(),
  constraint task_inputs_pkey primary key (organization_id, task_id, path),
  constraint task_inputs_task_id_fkey foreign key (organization_id, task_id)
    references app.tasks (organization_id, id) on delete cascade,
  constraint task_inputs_size_check check (size >= 0),
  constraint task_inputs_sha256_check check (sha256 ~ '^[0-9a-f]{64}$'),
  constraint task_inputs_path_check check (length(path) between 1 and 1024)
);
alter table app.task_inputs enable row level security;
alter table app.task_inputs force row level security;
create policy owner_all on app.task_inputs to runner_owner using (true) with check (true);
create policy scoped_all on app.task_inputs to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.task_inputs for select to runner_api
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.task_inputs to runner_scoped;
grant select on app.task_inputs to runner_api;

reset role;
