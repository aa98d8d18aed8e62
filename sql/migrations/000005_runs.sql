-- Run requests (what waits for a worker), runs (attempts), and what runs leave behind.
set local role runner_owner;

create table app.run_requests (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  kind text not null,
  task_id uuid,
  agent_profile_id uuid not null,
  mode text not null,
  state text not null,
  priority integer not null default 0,
  -- Starts so far.
  attempt integer not null default 0,
  -- Rises with every claim; the token of an earlier claim never fits again.
  fence bigint not null default 0,
  lease_secret_hash bytea,
  lease_expires_at timestamptz,
  worker_id text,
  run_id uuid,
  -- Of the capability of the last start. It is valid while the request is started and the lease runs, so that every ending
  -- of the lease ends it.
  execution_token_hash text,
  -- When a queued request may be published.
  due_at timestamptz not null default now(),
  -- Queued because work dispatch was stopped: left out of the sweep until it is resumed.
  parked boolean not null default false,
  published_at timestamptz,
  cancel_requested_at timestamptz,
  finished_at timestamptz,
  created_at timestamptz not null default now(),
  constraint run_requests_pkey primary key (organization_id, id),
  constraint run_requests_task_id_fkey foreign key (organization_id, task_id)
    references app.tasks (organization_id, id) on delete cascade,
  constraint run_requests_agent_profile_id_fkey foreign key (organization_id, agent_profile_id)
    references app.agent_profiles (organization_id, id) on delete no action,
  constraint run_requests_kind_check check (kind in ('task', 'chat')),
  constraint run_requests_task_when_task_check check ((kind = 'task') = (task_id is not null)),
  constraint run_requests_mode_check check (mode in ('plan', 'execute', 'verify')),
  constraint run_requests_state_check
    check (state in ('queued', 'published', 'leased', 'started', 'finished', 'cancelled')),
  constraint run_requests_lease_when_held_check check (
    (state in ('leased', 'started')) = (lease_expires_at is not null)
    and (lease_expires_at is null) = (lease_secret_hash is null)),
  constraint run_requests_run_when_started_check
    check (state <> 'started' or run_id is not null and execution_token_hash is not null),
  constraint run_requests_published_at_check check (state <> 'published' or published_at is not null),
  constraint run_requests_finished_at_when_over_check
    check ((state in ('finished', 'cancelled')) = (finished_at is not null)),
  constraint run_requests_cancel_requested_when_started_check
    check (cancel_requested_at is null or state in ('started', 'cancelled')),
  constraint run_requests_parked_when_queued_check check (not parked or state = 'queued'),
  constraint run_requests_counters_check check (attempt >= 0 and fence >= 0)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);
-- At most one request of a task is alive; a cancelled one that still holds its slot does not count.
create unique index run_requests_live_task_idx on app.run_requests (organization_id, task_id)
  where state in ('queued', 'published', 'leased', 'started') and cancel_requested_at is null and task_id is not null;
create index run_requests_task_id_idx on app.run_requests (organization_id, task_id, created_at)
  where task_id is not null;
-- Head of a lane: what a pull takes next.
create index run_requests_ready_idx on app.run_requests
  (organization_id, agent_profile_id, kind, priority desc, published_at, id) where state = 'published';
-- Claims and leases; read by the sweep too. lease_expires_at stays out of it, so that heartbeats stay HOT.
create index run_requests_held_idx on app.run_requests (organization_id, agent_profile_id)
  where state in ('leased', 'started');
create unique index run_requests_execution_token_hash_idx on app.run_requests (organization_id, execution_token_hash)
  where state = 'started';
create index run_requests_due_idx on app.run_requests (due_at) where state = 'queued' and not parked;
create index run_requests_parked_idx on app.run_requests (organization_id, due_at) where state = 'queued' and parked;
create index run_requests_agent_profile_id_idx on app.run_requests (organization_id, agent_profile_id);
alter table app.run_requests enable row level security;
alter table app.run_requests force row level security;
create policy owner_all on app.run_requests to runner_owner using (true) with check (true);
create policy scoped_all on app.run_requests to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_all on app.run_requests to runner_global using (true) with check (true);
create policy tenant_read on app.run_requests for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.run_requests to runner_scoped;
grant select, update on app.run_requests to runner_global;
-- The hash of a lease secret is nobody's to read.
grant select (organization_id, id, kind, task_id, agent_profile_id, mode, state, priority, attempt, fence,
  lease_expires_at, worker_id, run_id, due_at, parked, published_at, cancel_requested_at, finished_at, created_at)
  on app.run_requests to runner_api, runner_jobs;

create table app.runs (
  organization_id uuid not null,
  id uuid not null,
  kind text not null,
  task_id uuid,
  run_request_id uuid not null,
  agent_profile_id uuid not null,
  attempt integer not null,
  mode text not null,
  status text not null,
  -- The lease under which this run was started: a repeat of the holder's last call is recognized by it.
  fence bigint not null,
  lease_secret_hash bytea not null,
  worker_id text not null,
  harness text,
  model text,
  workspace_uri text,
  log_state text not null default 'not_recorded',
  log_count integer not null default 0,
  output jsonb,
  error jsonb,
  receipts jsonb,
  input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  tool_calls bigint not null default 0,
  cost_minor_units bigint not null default 0,
  cost_known boolean not null default false,
  -- The call that ended it, and the hash of its body: sent again it gets the same answer, changed it is refused.
  finish_call text,
  finish_hash text,
  started_at timestamptz not null default now(),
  finished_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint runs_pkey primary key (organization_id, id),
  constraint runs_run_request_id_fkey foreign key (organization_id, run_request_id)
    references app.run_requests (organization_id, id) on delete cascade,
  constraint runs_run_request_id_attempt_key unique (organization_id, run_request_id, attempt),
  constraint runs_kind_check check (kind in ('task', 'chat')),
  constraint runs_task_when_task_check check ((kind = 'task') = (task_id is not null)),
  constraint runs_mode_check check (mode in ('plan', 'execute', 'verify')),
  constraint runs_status_check
    check (status in ('starting', 'running', 'succeeded', 'failed', 'cancelled', 'expired')),
  constraint runs_finished_at_when_over_check check ((status in ('starting', 'running')) = (finished_at is null)),
  constraint runs_log_state_check check (log_state in ('not_recorded', 'recording', 'complete', 'truncated')),
  constraint runs_counters_check check (
    attempt >= 1 and log_count >= 0 and input_tokens >= 0 and output_tokens >= 0 and tool_calls >= 0
    and cost_minor_units >= 0),
  constraint runs_finish_check check ((finish_call is null) = (finish_hash is null)
    and finish_call in ('complete', 'fail'))
) with (fillfactor = 80);
create unique index runs_active_task_idx on app.runs (organization_id, task_id)
  where status in ('starting', 'running') and task_id is not null;
create index runs_created_at_idx on app.runs (organization_id, created_at, id) where kind = 'task';
create index runs_task_id_idx on app.runs (organization_id, task_id, created_at, id) where task_id is not null;
create index runs_agent_profile_id_idx on app.runs (organization_id, agent_profile_id, created_at, id);
create index runs_status_idx on app.runs (organization_id, status, created_at, id) where kind = 'task';
alter table app.runs enable row level security;
alter table app.runs force row level security;
create policy owner_all on app.runs to runner_owner using (true) with check (true);
create policy scoped_all on app.runs to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.runs for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.runs to runner_scoped;
grant select (organization_id, id, kind, task_id, run_request_id, agent_profile_id, attempt, mode, status, worker_id,
  harness, model, workspace_uri, log_state, log_count, output, error, receipts, input_tokens, output_tokens,
  tool_calls, cost_minor_units, cost_known, started_at, finished_at, created_at, updated_at)
  on app.runs to runner_api, runner_jobs;

create table app.run_logs (
  organization_id uuid not null,
  run_id uuid not null,
  sequence bigint not null,
  category text not null,
  status text not null,
  label text not null,
  detail text not null,
  occurred_at timestamptz not null,
  constraint run_logs_pkey primary key (organization_id, run_id, sequence),
  constraint run_logs_run_id_fkey foreign key (organization_id, run_id)
    references app.runs (organization_id, id) on delete cascade,
  constraint run_logs_sequence_check check (sequence >= 0),
  constraint run_logs_category_check
    check (category in ('planning', 'execution', 'tool', 'verification', 'sync', 'system')),
  constraint run_logs_status_check check (status in ('running', 'completed', 'failed', 'skipped')),
  constraint run_logs_label_check check (length(label) between 1 and 200),
  constraint run_logs_detail_check check (length(detail) <= 2000)
);
alter table app.run_logs enable row level security;
alter table app.run_logs force row level security;
create policy owner_all on app.run_logs to runner_owner using (true) with check (true);
create policy scoped_all on app.run_logs to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.run_logs for select to runner_api
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.run_logs to runner_scoped;
grant select on app.run_logs to runner_api;

create table app.run_outputs (
  organization_id uuid not null,
  run_id uuid not null,
  path text not null,
  storage_key text not null,
  size bigint not null,
  sha256 text not null,
  media_type text not null,
  created_at timestamptz not null default now(),
  constraint run_outputs_pkey primary key (organization_id, run_id, path),
  constraint run_outputs_run_id_fkey foreign key (organization_id, run_id)
    references app.runs (organization_id, id) on delete cascade,
  constraint run_outputs_size_check check (size >= 0),
  constraint run_outputs_sha256_check check (sha256 ~ '^[0-9a-f]{64}$'),
  constraint run_outputs_path_check check (length(path) between 1 and 1024)
);
alter table app.run_outputs enable row level security;
alter table app.run_outputs force row level security;
create policy owner_all on app.run_outputs to runner_owner using (true) with check (true);
create policy scoped_all on app.run_outputs to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.run_outputs for select to runner_api
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.run_outputs to runner_scoped;
grant select on app.run_outputs to runner_api;

-- What a run was given, fixed at its start: the context manifest.
create table app.run_inputs (
  organization_id uuid not null,
  run_id uuid not null,
  path text not null,
  role text not null,
  media_type text not null,
  size bigint not null,
  sha256 text,
  -- Where the bytes are: the text itself, or an object. Neither: named by the task, but not there at the start.
  content text,
  storage_key text,
  constraint run_inputs_pkey primary key (organization_id, run_id, path),
  constraint run_inputs_run_id_fkey foreign key (organization_id, run_id)
    references app.runs (organization_id, id) on delete cascade,
  constraint run_inputs_role_check check (role in ('instructions', 'input')),
  constraint run_inputs_size_check check (size >= 0),
  constraint run_inputs_one_place_check check (content is null or storage_key is null),
  constraint run_inputs_sha256_when_available_check
    check ((sha256 is not null) = (content is not null or storage_key is not null))
);
alter table app.run_inputs enable row level security;
alter table app.run_inputs force row level security;
create policy owner_all on app.run_inputs to runner_owner using (true) with check (true);
create policy scoped_all on app.run_inputs to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.run_inputs for select to runner_api
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.run_inputs to runner_scoped;
grant select on app.run_inputs to runner_api;

reset role;
