-- Runs (attempts), and what they are given and leave behind.
set local role runner_owner;

create domain app.run_status as text constraint run_status_check
  check (value in ('starting', 'running', 'succeeded', 'failed', 'cancelled', 'expired'));
create domain app.run_log_state as text constraint run_log_state_check
  check (value in ('not_recorded', 'recording', 'complete', 'truncated'));
create domain app.run_finish_call as text constraint run_finish_call_check check (value in ('complete', 'fail'));

create table app.runs (
  organization_id uuid not null,
  id uuid not null,
  run_request_id uuid not null,
  task_id uuid,
  chat_id uuid,
  message_id uuid,
  agent_profile_id uuid not null,
  kind app.run_kind not null,
  mode app.run_mode not null,
  status app.run_status not null,
  attempt integer not null,
  -- The lease under which this run was started: a repeat of the holder's last call is recognized by it.
  fence bigint not null,
  lease_secret_hash bytea not null,
  worker_id text not null,
  harness text,
  model text,
  workspace_uri text,
  log_state app.run_log_state not null default 'not_recorded',
  log_count integer not null default 0,
  output jsonb,
  error jsonb,
  receipts jsonb,
  spend_limited boolean not null default false,
  input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  tool_calls bigint not null default 0,
  cost_minor_units bigint not null default 0,
  cost_known boolean not null default false,
  -- The call that ended it, and the hash of its body: sent again it gets the same response, changed it is refused.
  finish_call app.run_finish_call,
  finish_hash text,
  started_at timestamptz not null default now(),
  finished_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint runs_pkey primary key (organization_id, id),
  constraint runs_run_request_id_attempt_key unique (organization_id, run_request_id, attempt),
  constraint runs_run_request_id_fkey foreign key (organization_id, run_request_id)
    references app.run_requests (organization_id, id) on delete cascade
) with (fillfactor = 80);

-- The rules of one row: see 000201_schemas.sql.
create function app.runs_check(r app.runs) returns boolean
  language plpgsql immutable
as $$
declare
  v_broken constant text := case
    when not ((r.kind = 'chat') = (r.message_id is not null) and (r.chat_id is null) = (r.message_id is null))
      then 'runs_chat_when_chat_check'
    when not (r.attempt >= 1 and r.log_count >= 0 and r.input_tokens >= 0 and r.output_tokens >= 0 and r.tool_calls >= 0
      and r.cost_minor_units >= 0) then 'runs_counters_check'
    when not ((r.finish_call is null) = (r.finish_hash is null)) then 'runs_finish_check'
    when not ((r.status in ('starting', 'running')) = (r.finished_at is null)) then 'runs_finished_at_when_over_check'
    when not ((r.kind = 'task') = (r.task_id is not null)) then 'runs_task_when_task_check'
  end;
begin
  if v_broken is not null then
    perform app.rule_refuse('runs', v_broken);
  end if;
  return true;
end
$$;
revoke all on function app.runs_check(app.runs) from public;
grant execute on function app.runs_check(app.runs) to runner_scoped, runner_global;
alter table app.runs add constraint runs_row_check check (app.runs_check(runs));

create unique index runs_active_task_idx on app.runs (organization_id, task_id)
  where status in ('starting', 'running') and task_id is not null;
create index runs_task_id_idx on app.runs (organization_id, task_id, created_at, id) where task_id is not null;
create index runs_all_created_at_idx on app.runs (created_at, id);
create index runs_status_idx on app.runs (organization_id, status, created_at, id, kind);
create index runs_created_at_idx on app.runs (organization_id, created_at, id, kind);
create index runs_agent_profile_id_idx on app.runs (organization_id, agent_profile_id, created_at, id, kind);

alter table app.runs enable row level security;
alter table app.runs force row level security;
create policy owner_all on app.runs to runner_owner using (true) with check (true);
create policy scoped_all on app.runs to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.runs for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy admin_read on app.runs for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy global_read on app.runs for select to runner_global using (true);
create policy report_read on app.runs for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.runs to runner_scoped;
-- How earlier runs failed, for a pull.
grant select (organization_id, id, task_id, mode, status, error, created_at) on app.runs to runner_global;
grant select (organization_id, id, run_request_id, task_id, chat_id, message_id, agent_profile_id, kind, mode, status,
  attempt, worker_id, harness, model, log_state, log_count, output, error, receipts, input_tokens, output_tokens,
  tool_calls, cost_minor_units, cost_known, started_at, finished_at, created_at, updated_at)
  on app.runs to runner_admin;
grant select (organization_id, id, run_request_id, task_id, chat_id, message_id, agent_profile_id, kind, mode, status,
  attempt, worker_id, harness, model, log_state, log_count, output, error, input_tokens, output_tokens, tool_calls,
  cost_minor_units, cost_known, started_at, finished_at, created_at)
  on app.runs to runner_report;
grant select (organization_id, id, run_request_id, task_id, chat_id, message_id, agent_profile_id, kind, mode, status,
  attempt, worker_id, harness, model, workspace_uri, log_state, log_count, output, error, receipts, input_tokens,
  output_tokens, tool_calls, cost_minor_units, cost_known, started_at, finished_at, created_at, updated_at)
  on app.runs to runner_api, runner_jobs;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.runs alter lease_secret_hash set statistics 0, alter worker_id set statistics 0,
  alter harness set statistics 0, alter model set statistics 0, alter log_count set statistics 0,
  alter output set statistics 0, alter error set statistics 0, alter receipts set statistics 0,
  alter input_tokens set statistics 0, alter output_tokens set statistics 0, alter tool_calls set statistics 0,
  alter cost_minor_units set statistics 0;

comment on table app.runs is 'Attempts of workers at run requests.';
comment on column app.runs.organization_id is 'The organization it belongs to.';
comment on column app.runs.id is 'Chosen by the worker.';
comment on column app.runs.run_request_id is 'What it is an attempt at.';
comment on column app.runs.task_id is 'The task.';
comment on column app.runs.chat_id is 'The chat of a turn.';
comment on column app.runs.message_id is 'The reply that a turn writes.';
comment on column app.runs.agent_profile_id is 'Who runs.';
comment on column app.runs.kind is 'Of a task, or a chat turn.';
comment on column app.runs.mode is 'What it does.';
comment on column app.runs.status is 'starting and running are active, the others are over.';
comment on column app.runs.attempt is 'Which start of its request.';
comment on column app.runs.fence is 'The lease under which it was started.';
comment on column app.runs.lease_secret_hash is 'Digest of the secret of that lease; never shown.';
comment on column app.runs.worker_id is 'Who ran it, as the worker calls itself.';
comment on column app.runs.harness is 'What the agent ran in.';
comment on column app.runs.model is 'The model that was used.';
comment on column app.runs.workspace_uri is 'Where the worker worked, as it says.';
comment on column app.runs.log_state is 'Whether its logs are complete.';
comment on column app.runs.log_count is 'Entries of its log.';
comment on column app.runs.output is 'What it returned.';
comment on column app.runs.error is 'Why it failed.';
comment on column app.runs.receipts is 'Commands that the worker ran, as digests.';
comment on column app.runs.spend_limited is 'Whether something in the hierarchy of its task has a spend limit.';
comment on column app.runs.input_tokens is 'Tokens it read.';
comment on column app.runs.output_tokens is 'Tokens it wrote.';
comment on column app.runs.tool_calls is 'Calls of tools.';
comment on column app.runs.cost_minor_units is 'What it cost, in minor units.';
comment on column app.runs.cost_known is 'Whether the worker said what it cost.';
comment on column app.runs.finish_call is 'The call that ended it.';
comment on column app.runs.finish_hash is 'Digest of that call: a repeat gets the same response.';
comment on column app.runs.started_at is 'When it started.';
comment on column app.runs.finished_at is 'When it was over.';
comment on column app.runs.created_at is 'When it was made.';
comment on column app.runs.updated_at is 'When it was last changed.';

create domain app.run_log_category as text constraint run_log_category_check
  check (value in ('planning', 'execution', 'tool', 'verification', 'sync', 'system'));
create domain app.run_log_status as text constraint run_log_status_check
  check (value in ('running', 'completed', 'failed', 'skipped'));

create table app.run_logs (
  organization_id uuid not null,
  run_id uuid not null,
  sequence bigint not null,
  category app.run_log_category not null,
  status app.run_log_status not null,
  label text not null,
  detail text not null,
  occurred_at timestamptz not null,
  constraint run_logs_pkey primary key (organization_id, run_id, sequence),
  constraint run_logs_run_id_fkey foreign key (organization_id, run_id)
    references app.runs (organization_id, id) on delete cascade
);

-- The rules of one row: see 000201_schemas.sql.
create function app.run_logs_check(r app.run_logs) returns boolean
  language plpgsql immutable
as $$
declare
  v_broken constant text := case
    when not length(r.detail) <= 2000 then 'run_logs_detail_check'
    when not length(r.label) between 1 and 200 then 'run_logs_label_check'
    when not r.sequence >= 0 then 'run_logs_sequence_check'
  end;
begin
  if v_broken is not null then
    perform app.rule_refuse('run_logs', v_broken);
  end if;
  return true;
end
$$;
revoke all on function app.run_logs_check(app.run_logs) from public;
grant execute on function app.run_logs_check(app.run_logs) to runner_scoped, runner_global;
alter table app.run_logs add constraint run_logs_row_check check (app.run_logs_check(run_logs));


alter table app.run_logs enable row level security;
alter table app.run_logs force row level security;
create policy owner_all on app.run_logs to runner_owner using (true) with check (true);
create policy scoped_all on app.run_logs to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.run_logs for select to runner_api
  using (organization_id = (select app.current_organization()));
create policy admin_read on app.run_logs for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy report_read on app.run_logs for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.run_logs to runner_scoped;
grant select on app.run_logs to runner_api;
grant select (organization_id, run_id, sequence, category, status, label, detail, occurred_at)
  on app.run_logs to runner_admin;
grant select (organization_id, run_id, sequence, category, status, occurred_at)
  on app.run_logs to runner_report;

comment on table app.run_logs is 'What runs say of themselves: safe technical metadata.';
comment on column app.run_logs.organization_id is 'The organization it belongs to.';
comment on column app.run_logs.run_id is 'The run.';
comment on column app.run_logs.sequence is 'The place in its log.';
comment on column app.run_logs.category is 'What it is about.';
comment on column app.run_logs.status is 'How it went.';
comment on column app.run_logs.label is 'In short, one line.';
comment on column app.run_logs.detail is 'Some more, one line.';
comment on column app.run_logs.occurred_at is 'When it happened, as the worker says.';

create table app.run_outputs (
  organization_id uuid not null,
  run_id uuid not null,
  path text not null,
  layout_key text not null,
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
create policy admin_read on app.run_outputs for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
grant select, insert, update, delete on app.run_outputs to runner_scoped;
grant select on app.run_outputs to runner_api;
grant select (organization_id, run_id, path, size, sha256, media_type, created_at)
  on app.run_outputs to runner_admin;

comment on table app.run_outputs is 'Files that runs made.';
comment on column app.run_outputs.organization_id is 'The organization it belongs to.';
comment on column app.run_outputs.run_id is 'The run.';
comment on column app.run_outputs.path is 'Where the run put it.';
comment on column app.run_outputs.layout_key is
  'The path without case and normalization: files of one key are one file on many file systems.';
comment on column app.run_outputs.storage_key is 'Where the bytes lie in the object storage; never shown.';
comment on column app.run_outputs.size is 'In bytes.';
comment on column app.run_outputs.sha256 is 'SHA-256 of the bytes, in hex.';
comment on column app.run_outputs.media_type is 'As its content says.';
comment on column app.run_outputs.created_at is 'When it was made.';

create domain app.run_input_role as text constraint run_input_role_check check (value in ('instructions', 'input'));

-- What a run was given, fixed at its start: the context manifest.
create table app.run_inputs (
  organization_id uuid not null,
  run_id uuid not null,
  path text not null,
  -- Whose attachment the bytes are; null again once they are gone.
  chat_id uuid,
  role app.run_input_role not null,
  media_type text not null,
  size bigint not null,
  sha256 text,
  -- Where the bytes are: the text itself, or an object. Neither: named by the task, but not there at the start.
  content text,
  storage_key text,
  constraint run_inputs_pkey primary key (organization_id, run_id, path),
  constraint run_inputs_run_id_fkey foreign key (organization_id, run_id)
    references app.runs (organization_id, id) on delete cascade,
  constraint run_inputs_size_check check (size >= 0),
  constraint run_inputs_one_place_check check (content is null or storage_key is null),
  constraint run_inputs_sha256_when_available_check
    check ((sha256 is not null) = (content is not null or storage_key is not null)),
  constraint run_inputs_chat_id_when_stored_check check (chat_id is null or storage_key is not null)
);
create index run_inputs_chat_id_idx on app.run_inputs (organization_id, chat_id) where chat_id is not null;

alter table app.run_inputs enable row level security;
alter table app.run_inputs force row level security;
create policy owner_all on app.run_inputs to runner_owner using (true) with check (true);
create policy scoped_all on app.run_inputs to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.run_inputs for select to runner_api
  using (organization_id = (select app.current_organization()));
create policy admin_read on app.run_inputs for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
grant select, insert, update, delete on app.run_inputs to runner_scoped;
grant select on app.run_inputs to runner_api;
grant select (organization_id, run_id, path, chat_id, role, media_type, size, sha256)
  on app.run_inputs to runner_admin;

comment on table app.run_inputs is 'What runs were given, fixed at their start.';
comment on column app.run_inputs.organization_id is 'The organization it belongs to.';
comment on column app.run_inputs.run_id is 'The run.';
comment on column app.run_inputs.path is 'Where the run finds it.';
comment on column app.run_inputs.chat_id is 'The chat whose attachment it is.';
comment on column app.run_inputs.role is 'Whether it instructs or is material.';
comment on column app.run_inputs.media_type is 'Of the file.';
comment on column app.run_inputs.size is 'In bytes.';
comment on column app.run_inputs.sha256 is 'SHA-256 of the bytes, in hex; null where they were not there.';
comment on column app.run_inputs.content is 'The text itself, where it is short; never shown.';
comment on column app.run_inputs.storage_key is 'Where the bytes lie in the object storage; never shown.';

reset role;
