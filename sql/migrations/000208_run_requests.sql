-- Run requests: what waits for a worker, by task or by reply of a chat.
set local role runner_owner;

create domain app.run_mode as text constraint run_mode_check check (value in ('plan', 'execute', 'verify'));
create domain app.run_request_state as text constraint run_request_state_check
  check (value in ('queued', 'published', 'leased', 'started', 'finished', 'cancelled'));

create table app.run_requests (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  task_id uuid,
  chat_id uuid,
  message_id uuid,
  agent_profile_id uuid not null,
  run_id uuid,
  staged_run_id uuid,
  kind app.run_kind not null,
  mode app.run_mode not null,
  state app.run_request_state not null,
  -- Queued because work dispatch was stopped: left out of the sweep until it is resumed.
  parked boolean not null default false,
  priority integer not null default 0,
  worker_id text,
  lease_secret_hash bytea,
  lease_expires_at timestamptz,
  -- Of the capability of the last start. It is valid while the request is started and the lease runs, so that every ending
  -- of the lease ends it.
  execution_token_hash text,
  -- Starts so far.
  attempt integer not null default 0,
  -- Rises with every claim; the token of an earlier claim never fits again.
  fence bigint not null default 0,
  -- When a queued request may be published.
  due_at timestamptz not null default now(),
  published_at timestamptz,
  cancel_requested_at timestamptz,
  finished_at timestamptz,
  created_at timestamptz not null default now(),
  constraint run_requests_pkey primary key (organization_id, id),
  constraint run_requests_task_id_fkey foreign key (organization_id, task_id)
    references app.tasks (organization_id, id) on delete cascade,
  constraint run_requests_agent_profile_id_fkey foreign key (organization_id, agent_profile_id)
    references app.agent_profiles (organization_id, id) on delete no action,
  constraint run_requests_message_id_fkey foreign key (organization_id, message_id)
    references app.messages (organization_id, id) on delete cascade
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);

-- The rules of one row: see 000201_schemas.sql.
create function app.run_requests_check(r app.run_requests) returns boolean
  language plpgsql immutable
as $$
declare
  v_broken constant text := case
    when not (r.cancel_requested_at is null or r.state in ('started', 'cancelled'))
      then 'run_requests_cancel_requested_when_started_check'
    when not ((r.kind = 'chat') = (r.message_id is not null) and (r.chat_id is null) = (r.message_id is null))
      then 'run_requests_chat_when_chat_check'
    when not (r.attempt >= 0 and r.fence >= 0) then 'run_requests_counters_check'
    when not ((r.state in ('finished', 'cancelled')) = (r.finished_at is not null))
      then 'run_requests_finished_at_when_over_check'
    when not ((r.state in ('leased', 'started')) = (r.lease_expires_at is not null)
      and (r.lease_expires_at is null) = (r.lease_secret_hash is null)) then 'run_requests_lease_when_held_check'
    when not (not r.parked or r.state = 'queued') then 'run_requests_parked_when_queued_check'
    when not (r.state <> 'published' or r.published_at is not null) then 'run_requests_published_at_check'
    when not (r.state <> 'started' or r.run_id is not null and r.execution_token_hash is not null)
      then 'run_requests_run_when_started_check'
    when not ((r.kind = 'task') = (r.task_id is not null)) then 'run_requests_task_when_task_check'
  end;
begin
  if v_broken is not null then
    perform app.rule_refuse('run_requests', v_broken);
  end if;
  return true;
end
$$;
revoke all on function app.run_requests_check(app.run_requests) from public;
grant execute on function app.run_requests_check(app.run_requests) to runner_scoped, runner_global;
alter table app.run_requests add constraint run_requests_row_check check (app.run_requests_check(run_requests));

-- At most one request of a task is alive; a cancelled one that still holds its slot does not count.
create unique index run_requests_live_task_idx on app.run_requests (organization_id, task_id)
  where state in ('queued', 'published', 'leased', 'started') and cancel_requested_at is null and task_id is not null;
create index run_requests_task_id_idx on app.run_requests (organization_id, task_id, created_at)
  where task_id is not null;
-- Head of a lane: what a pull takes next.
create index run_requests_ready_idx on app.run_requests
  (organization_id, agent_profile_id, kind, priority desc, published_at, id) where state = 'published';
-- The oldest one of all organizations, for metrics.
create index run_requests_published_at_idx on app.run_requests (kind, published_at) where state = 'published';
-- Claims and leases; read by the sweep too. lease_expires_at stays out of it, so that heartbeats stay HOT.
create index run_requests_held_idx on app.run_requests (organization_id, agent_profile_id)
  where state in ('leased', 'started');
-- The digest first: tokens_held looks for it in all organizations. Not unique, as a unique one would begin with the
-- organization; it is made of the run's id, which is.
create index run_requests_execution_token_hash_idx on app.run_requests (execution_token_hash, organization_id)
  where state = 'started';
-- What is due; read by the sweep: by the first index all of it, or by the second organization by organization, where that is
-- much (app.due_in_turns).
create index run_requests_due_idx on app.run_requests (due_at) where state = 'queued' and not parked;
create index run_requests_due_turns_idx on app.run_requests (organization_id, due_at) where state = 'queued' and not parked;
create index run_requests_parked_idx on app.run_requests (organization_id, due_at) where state = 'queued' and parked;
create index run_requests_agent_profile_id_idx on app.run_requests (organization_id, agent_profile_id);
create unique index run_requests_message_id_idx on app.run_requests (organization_id, message_id)
  where message_id is not null;
-- Turns that nobody has started yet; read by the sweep.
create index run_requests_chat_waiting_idx on app.run_requests (created_at)
  where kind = 'chat' and state in ('published', 'leased');
create index run_requests_chat_waiting_turns_idx on app.run_requests (organization_id, created_at)
  where kind = 'chat' and state in ('published', 'leased');
create index run_requests_all_created_at_idx on app.run_requests (created_at, id);
-- None of its columns ever changes, so that heartbeats and claims stay HOT.
create index run_requests_created_at_idx on app.run_requests (organization_id, created_at, id);

-- Which changes of state change a counter of dispatch: the condition of a trigger is parsed for every statement, as checks are.
-- What the pull does it counts itself.
create function app.run_requests_counts(p_old text, p_new text) returns boolean
  language plpgsql immutable
as $$
begin
  return p_old <> p_new and not (p_old = 'published' and p_new = 'leased')
    and ((p_old = 'published') <> (p_new = 'published')
      or (p_old in ('leased', 'started')) <> (p_new in ('leased', 'started')));
end
$$;
revoke all on function app.run_requests_counts from public;
grant execute on function app.run_requests_counts to runner_scoped, runner_global;
create constraint trigger run_requests_count_insert after insert on app.run_requests
  deferrable initially deferred for each row
  when (new.state in ('published', 'leased', 'started'))
  execute function app.run_requests_count();

create constraint trigger run_requests_count_update after update of state on app.run_requests
  deferrable initially deferred for each row
  when (app.run_requests_counts(old.state, new.state)) execute function app.run_requests_count();

-- Not deferred: what they note goes out with the result of the statement.
create trigger run_requests_wake_insert after insert on app.run_requests
  for each row execute function app.run_requests_wake();
create trigger run_requests_wake_update after update of state on app.run_requests
  for each row when (app.run_requests_counts(old.state, new.state)) execute function app.run_requests_wake();

create trigger run_requests_wake_stop after update of cancel_requested_at on app.run_requests
  for each row execute function app.run_requests_wake_stop();

alter table app.run_requests enable row level security;
alter table app.run_requests force row level security;
create policy owner_all on app.run_requests to runner_owner using (true) with check (true);
create policy scoped_all on app.run_requests to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_all on app.run_requests to runner_global using (true) with check (true);
create policy tenant_read on app.run_requests for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy admin_read on app.run_requests for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy report_read on app.run_requests for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.run_requests to runner_scoped;
grant select, update on app.run_requests to runner_global;
grant select (organization_id, id, task_id, chat_id, message_id, agent_profile_id, run_id, kind, mode, state, parked,
  priority, worker_id, lease_expires_at, attempt, fence, due_at, published_at, cancel_requested_at, finished_at,
  created_at)
  on app.run_requests to runner_admin;
grant select (organization_id, id, task_id, chat_id, message_id, agent_profile_id, kind, mode, state, parked,
  priority, attempt, due_at, published_at, cancel_requested_at, finished_at, created_at)
  on app.run_requests to runner_report;
grant select (organization_id, id, task_id, chat_id, message_id, agent_profile_id, run_id, kind, mode, state, parked,
  priority, worker_id, lease_expires_at, attempt, fence, due_at, published_at, cancel_requested_at, finished_at,
  created_at)
  on app.run_requests to runner_api, runner_jobs;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.run_requests alter priority set statistics 0, alter lease_secret_hash set statistics 0;

comment on table app.run_requests is
  'What waits for a worker: one for each phase of a task, and one for each reply in a chat.';
comment on column app.run_requests.organization_id is 'The organization it belongs to.';
comment on column app.run_requests.id is 'Id of the request.';
comment on column app.run_requests.task_id is 'The task.';
comment on column app.run_requests.chat_id is 'The chat of a turn.';
comment on column app.run_requests.message_id is 'The reply that a turn writes.';
comment on column app.run_requests.agent_profile_id is 'Who runs it.';
comment on column app.run_requests.run_id is 'The last run of it.';
comment on column app.run_requests.staged_run_id is 'A run with a staged outcome or question, which its end applies.';
comment on column app.run_requests.kind is 'A task, or a reply in a chat.';
comment on column app.run_requests.mode is 'What the run does.';
comment on column app.run_requests.state is
  'queued: not due, or dispatch is stopped. published: a worker may take it. leased: handed to one. started: a run holds the lease. finished and cancelled: over.';
comment on column app.run_requests.parked is 'Queued because work dispatch is stopped.';
comment on column app.run_requests.priority is 'Higher goes first.';
comment on column app.run_requests.worker_id is 'Who holds it, as the worker calls itself.';
comment on column app.run_requests.lease_secret_hash is 'Digest of the secret of the lease; never shown.';
comment on column app.run_requests.lease_expires_at is 'When the lease ends without a heartbeat.';
comment on column app.run_requests.execution_token_hash is 'Digest of the capability of the last start; never shown.';
comment on column app.run_requests.attempt is 'Starts so far.';
comment on column app.run_requests.fence is 'Rises with every claim: an older lease never fits again.';
comment on column app.run_requests.due_at is 'When it may be published.';
comment on column app.run_requests.published_at is 'Since when workers may take it.';
comment on column app.run_requests.cancel_requested_at is
  'It was cancelled while a worker held it, and holds its slot until that one reports.';
comment on column app.run_requests.finished_at is 'When it was over.';
comment on column app.run_requests.created_at is 'When it was made.';

reset role;
