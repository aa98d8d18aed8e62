-- Tasks, their dependency edges and their numbers.
set local role runner_owner;

create domain app.task_identifier_scope as text constraint task_identifier_scope_check check (value in ('T', 'I'));
create domain app.task_kind as text constraint task_kind_check check (value in ('task', 'initiative'));
create domain app.task_status as text constraint task_status_check
  check (value in ('pending', 'blocked', 'running', 'waiting', 'completed', 'failed', 'cancelled'));
create domain app.task_phase as text constraint task_phase_check
  check (value in ('plan', 'execute', 'verify', 'closed'));

create table app.tasks (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  identifier_scope app.task_identifier_scope not null,
  identifier_number integer not null,
  parent_id uuid,
  root_task_id uuid not null,
  depth integer not null default 0,
  owner_agent_profile_id uuid not null,
  source_chat_id uuid,
  source_message_id uuid,
  schedule_id uuid,
  created_by_run_id uuid,
  active_run_id uuid,
  -- The task whose failure failed or cancelled this one; itself, where it is the origin. Null: a person did it.
  failure_origin_id uuid,
  -- The task whose cancel by a person cancelled this one; itself, where it was named.
  cancel_origin_id uuid,
  kind app.task_kind not null,
  status app.task_status not null,
  phase app.task_phase not null,
  title text not null,
  priority integer not null default 0,
  dedupe_key text not null,
  spec jsonb not null,
  blockers jsonb not null default '[]',
  waiting_until timestamptz,
  waiting_reason text,
  -- Until all of them are over the task is blocked by them; then their results are among its answers.
  waiting_action_ids jsonb,
  -- Failures of the formal contract in this phase: {failures, runId, checks}.
  contract jsonb,
  -- What people answered, for the next run.
  answers jsonb not null default '[]',
  -- Why an initiative is planned again: {reason, taskId, error}; with `asked` until one of its replans is taken for it,
  -- with `missed` when it came too late for the plan run in progress.
  replan jsonb,
  -- What a verifier verifies: {runId, executorProfileId, result}. Stays after a verdict, for a person who accepts the result.
  verification jsonb,
  error jsonb,
  result jsonb,
  -- Of a root: a task of its hierarchy has a spend limit.
  spend_limited boolean not null default false,
  -- The budget as it was set, once an answer has raised it: each further answer gives as much again.
  spend_allowance jsonb,
  version integer not null default 1,
  -- Only a root's counts; a child shows its root's.
  graph_revision integer not null default 1,
  completion_revision integer not null default 0,
  agent_run_count integer not null default 0,
  consumed_agent_run_count integer not null default 0,
  replan_count integer not null default 0,
  -- Of the task's runs and those below it, where the root is spend_limited.
  spent_cost_minor_units bigint not null default 0,
  spent_tokens bigint not null default 0,
  -- Of those runs, how many have said what they cost. The others' cost is unknown, not zero.
  cost_known_run_count integer not null default 0,
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
    references app.agent_profiles (organization_id, id) on delete no action
);

-- The rules of one row: see 000201_schemas.sql.
create function app.tasks_check(r app.tasks) returns boolean
  language plpgsql immutable
as $$
declare
  v_broken constant text := case
    when not ((r.status = 'blocked') = (r.blockers <> '[]')) then 'tasks_blocked_when_blockers_check'
    when not jsonb_typeof(r.blockers) = 'array' then 'tasks_blockers_check'
    when not (r.cancel_origin_id is null or r.status = 'cancelled' and r.failure_origin_id is null)
      then 'tasks_cancel_origin_when_cancelled_check'
    when not ((r.phase = 'closed') = (r.status in ('completed', 'failed', 'cancelled'))) then 'tasks_closed_when_over_check'
    when not ((r.status = 'completed') = (r.completed_at is not null)) then 'tasks_completed_at_when_completed_check'
    when not (r.version >= 1 and r.graph_revision >= 1 and r.agent_run_count >= 0 and r.replan_count >= 0
      and r.completion_revision >= 0 and r.consumed_agent_run_count >= r.agent_run_count) then 'tasks_counters_check'
    when not length(r.dedupe_key) between 1 and 200 then 'tasks_dedupe_key_check'
    when not (r.depth >= 0 and (r.depth = 0) = (r.parent_id is null)) then 'tasks_depth_check'
    when not (r.failure_origin_id is null or r.status in ('failed', 'cancelled')) then 'tasks_failure_origin_when_over_check'
    when not (r.status <> 'failed' or r.failure_origin_id is not null) then 'tasks_origin_when_failed_check'
    when not (r.phase <> 'plan' or r.kind = 'initiative') then 'tasks_plan_of_initiative_check'
    when not (r.replan is null or r.kind = 'initiative') then 'tasks_replan_of_initiative_check'
    when not ((r.parent_id is null) = (r.root_task_id = r.id)) then 'tasks_root_when_no_parent_check'
    when not ((r.status = 'running') = (r.active_run_id is not null)) then 'tasks_running_when_active_run_check'
    when not ((r.kind = 'task') = (r.identifier_scope = 'T')) then 'tasks_scope_of_kind_check'
    when not jsonb_typeof(r.spec) = 'object' then 'tasks_spec_check'
    when not (r.spent_cost_minor_units >= 0 and r.spent_tokens >= 0 and r.cost_known_run_count >= 0) then 'tasks_spend_check'
    when not (not r.spend_limited or r.parent_id is null) then 'tasks_spend_limited_when_root_check'
    when not length(r.title) between 1 and 200 then 'tasks_title_check'
    when not (r.phase <> 'verify' or r.verification is not null) then 'tasks_verification_when_verify_check'
    when not (r.waiting_action_ids is null
      or r.status in ('pending', 'blocked') and jsonb_typeof(r.waiting_action_ids) = 'array')
      then 'tasks_waiting_action_ids_when_open_check'
    when not ((r.status = 'waiting') = (r.waiting_until is not null)) then 'tasks_waiting_when_until_check'
  end;
begin
  if v_broken is not null then
    perform app.rule_refuse('tasks', v_broken);
  end if;
  return true;
end
$$;
revoke all on function app.tasks_check(app.tasks) from public;
grant execute on function app.tasks_check(app.tasks) to runner_scoped, runner_global;
alter table app.tasks add constraint tasks_row_check check (app.tasks_check(tasks));

-- An open task with the same key is returned instead of making a second one.
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
-- What time alone unblocks; read by the sweep, as what is due of run requests. A task whose time has come, and that something
-- else blocks, is not in them: it would be read in every round.
create index tasks_waiting_until_idx on app.tasks (waiting_until) where status = 'waiting';
create index tasks_waiting_until_turns_idx on app.tasks (organization_id, waiting_until) where status = 'waiting';
create index tasks_scheduled_at_idx on app.tasks (scheduled_at)
  where status = 'blocked' and scheduled_at is not null and blockers @> '[{"kind": "schedule"}]';
create index tasks_scheduled_at_turns_idx on app.tasks (organization_id, scheduled_at)
  where status = 'blocked' and scheduled_at is not null and blockers @> '[{"kind": "schedule"}]';
-- What waits for a verifier, when a profile comes or goes.
create index tasks_verify_idx on app.tasks (organization_id, id) where phase = 'verify';
create index tasks_schedule_id_idx on app.tasks (organization_id, schedule_id)
  where schedule_id is not null and status in ('pending', 'blocked', 'running', 'waiting');
-- The newest over all organizations; those of one organization have an index already.
create index tasks_all_created_at_idx on app.tasks (created_at, id);

create trigger tasks_raise_version before update on app.tasks
  for each row execute function app.tasks_raise_version();

create trigger tasks_track_spend_insert after insert on app.tasks
  for each row when (new.spec -> 'budget' ?| array['maxCostMinorUnits', 'maxTokens'])
  execute function app.tasks_track_spend();

create trigger tasks_track_spend_update after update of spec on app.tasks
  for each row when (new.spec -> 'budget' ?| array['maxCostMinorUnits', 'maxTokens'])
  execute function app.tasks_track_spend();

alter table app.tasks enable row level security;
alter table app.tasks force row level security;
create policy owner_all on app.tasks to runner_owner using (true) with check (true);
create policy scoped_all on app.tasks to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_read on app.tasks for select to runner_global using (true);
create policy tenant_read on app.tasks for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy admin_read on app.tasks for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy report_read on app.tasks for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.tasks to runner_scoped;
grant select on app.tasks to runner_global, runner_api, runner_jobs;
grant select (organization_id, id, identifier_scope, identifier_number, parent_id, root_task_id, depth,
  owner_agent_profile_id, source_chat_id, source_message_id, schedule_id, created_by_run_id, active_run_id,
  failure_origin_id, kind, status, phase, title, priority, dedupe_key, spec, blockers, waiting_until, waiting_reason,
  contract, answers, replan, verification, error, result, spend_limited, version, graph_revision, completion_revision,
  agent_run_count, consumed_agent_run_count, replan_count, spent_cost_minor_units, spent_tokens, cost_known_run_count,
  scheduled_at, due_at, started_at, completed_at, created_at, updated_at)
  on app.tasks to runner_admin;
grant select (organization_id, id, identifier_scope, identifier_number, parent_id, root_task_id, depth,
  owner_agent_profile_id, source_chat_id, source_message_id, schedule_id, created_by_run_id, failure_origin_id, kind,
  status, phase, title, priority, spec, blockers, waiting_until, error, agent_run_count, consumed_agent_run_count,
  replan_count, scheduled_at, due_at, started_at, completed_at, created_at, updated_at)
  on app.tasks to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.tasks alter title set statistics 0, alter priority set statistics 0, alter spec set statistics 0,
  alter blockers set statistics 0, alter contract set statistics 0, alter answers set statistics 0,
  alter replan set statistics 0, alter verification set statistics 0, alter error set statistics 0,
  alter result set statistics 0, alter waiting_action_ids set statistics 0, alter spend_allowance set statistics 0,
  alter agent_run_count set statistics 0,
  alter consumed_agent_run_count set statistics 0, alter replan_count set statistics 0;

comment on table app.tasks is
  'Work to be done. Initiatives are planned and have tasks below them; tasks are executed by runs.';
comment on column app.tasks.organization_id is 'The organization it belongs to.';
comment on column app.tasks.id is 'Id of the task.';
comment on column app.tasks.identifier_scope is 'T for tasks, I for initiatives.';
comment on column app.tasks.identifier_number is 'Counted in the organization, by scope.';
comment on column app.tasks.parent_id is 'The initiative that it is below.';
comment on column app.tasks.root_task_id is 'The top of its hierarchy; itself at depth 0.';
comment on column app.tasks.depth is 'How far below its root.';
comment on column app.tasks.owner_agent_profile_id is 'Whose work it is.';
comment on column app.tasks.source_chat_id is 'The chat it came from.';
comment on column app.tasks.source_message_id is 'The message it came from.';
comment on column app.tasks.schedule_id is 'The schedule whose fire made it.';
comment on column app.tasks.created_by_run_id is 'The run that made it.';
comment on column app.tasks.active_run_id is 'The run that works on it.';
comment on column app.tasks.failure_origin_id is 'The task whose failure ended it, maybe itself; null: a person did.';
comment on column app.tasks.cancel_origin_id is
  'The task that a person cancelled, and this one with it, maybe itself: a retry of it brings both back.';
comment on column app.tasks.kind is 'Initiatives are planned, tasks are executed.';
comment on column app.tasks.status is
  'pending: ready to run. blocked: see its blockers. waiting: until a time. Open are those and running.';
comment on column app.tasks.phase is 'What its next run does; closed when it is over.';
comment on column app.tasks.title is 'For people.';
comment on column app.tasks.priority is 'Higher goes first.';
comment on column app.tasks.dedupe_key is 'An open task with the same key is not made twice.';
comment on column app.tasks.spec is 'Objective, inputs, acceptance criteria, budget, verification.';
comment on column app.tasks.blockers is 'Why it is blocked, as found when it last changed.';
comment on column app.tasks.waiting_until is 'When it goes on by itself.';
comment on column app.tasks.waiting_reason is 'What it waits for, as its run said.';
comment on column app.tasks.waiting_action_ids is 'Actions that it waits for, as its run said.';
comment on column app.tasks.contract is 'Failures of its acceptance criteria in this phase.';
comment on column app.tasks.answers is 'What people answered about it, for its next run.';
comment on column app.tasks.replan is 'Why an initiative is planned again.';
comment on column app.tasks.verification is 'What a verifier verifies.';
comment on column app.tasks.error is 'Why it failed.';
comment on column app.tasks.result is 'What it led to.';
comment on column app.tasks.spend_limited is
  'Of a root: something in its hierarchy has a spend limit, so what runs cost is counted.';
comment on column app.tasks.spend_allowance is 'The budget as it was set, once an answer has raised it.';
comment on column app.tasks.version is 'Rises with every change.';
comment on column app.tasks.graph_revision is
  'Rises with every change of the structure below its root; counted at the root.';
comment on column app.tasks.completion_revision is 'Rises with each completion.';
comment on column app.tasks.agent_run_count is 'Runs that were started for it.';
comment on column app.tasks.consumed_agent_run_count is
  'Runs that were started for it and below it; what the budget limits.';
comment on column app.tasks.replan_count is 'How often it was planned again.';
comment on column app.tasks.spent_cost_minor_units is
  'What its runs and those below it cost, in minor units, where that is counted.';
comment on column app.tasks.spent_tokens is 'Tokens of those runs.';
comment on column app.tasks.cost_known_run_count is
  'How many of those runs said what they cost; the cost of others is unknown.';
comment on column app.tasks.scheduled_at is 'It does not start before.';
comment on column app.tasks.due_at is 'When it should be done.';
comment on column app.tasks.due_order is 'Sort key of due_at: those without come last.';
comment on column app.tasks.started_at is 'When its first run started.';
comment on column app.tasks.completed_at is 'When it was completed.';
comment on column app.tasks.created_at is 'When it was made.';
comment on column app.tasks.updated_at is 'When it was last changed.';

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
create policy admin_read on app.task_dependencies for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy report_read on app.task_dependencies for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.task_dependencies to runner_scoped;
grant select on app.task_dependencies to runner_api;
grant select (organization_id, id, task_id, depends_on_task_id, root_task_id, depends_on_root_task_id, required,
  created_at)
  on app.task_dependencies to runner_admin;
grant select (organization_id, id, task_id, depends_on_task_id, required, created_at)
  on app.task_dependencies to runner_report;

comment on table app.task_dependencies is 'Which task waits for which.';
comment on column app.task_dependencies.organization_id is 'The organization it belongs to.';
comment on column app.task_dependencies.id is 'Id of the edge.';
comment on column app.task_dependencies.task_id is 'The task that waits.';
comment on column app.task_dependencies.depends_on_task_id is 'What it waits for.';
comment on column app.task_dependencies.root_task_id is 'Root of the task that waits.';
comment on column app.task_dependencies.depends_on_root_task_id is 'Root of what it waits for.';
comment on column app.task_dependencies.required is
  'Whether it waits until the other is completed, or only comes after it.';
comment on column app.task_dependencies.created_at is 'When it was made.';

create table app.task_identifiers (
  organization_id uuid not null,
  scope app.task_identifier_scope not null,
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

comment on table app.task_identifiers is 'The last number that was given to a task, by scope.';
comment on column app.task_identifiers.organization_id is 'The organization it belongs to.';
comment on column app.task_identifiers.scope is 'T or I.';
comment on column app.task_identifiers.last_number is 'The last one that was given.';

reset role;
