-- What agents hand in about their run before it ends: plans, verdicts, waits and questions.
set local role runner_owner;

create domain app.task_outcome_kind as text constraint task_outcome_kind_check
  check (value in ('plan', 'verification', 'waiting', 'needs_input', 'execution'));

create table app.task_outcomes (
  organization_id uuid not null,
  run_id uuid not null,
  task_id uuid not null,
  kind app.task_outcome_kind not null,
  idempotency_key text not null,
  body_hash text not null,
  -- What the run saw when it handed this in.
  task_version integer not null,
  graph_revision integer not null,
  outcome jsonb not null,
  -- Tasks that a plan names: their hierarchies are locked before it is applied.
  reference_ids jsonb not null default '[]',
  applied_at timestamptz,
  created_at timestamptz not null default now(),
  constraint task_outcomes_pkey primary key (organization_id, run_id),
  constraint task_outcomes_run_id_fkey foreign key (organization_id, run_id)
    references app.runs (organization_id, id) on delete cascade,
  constraint task_outcomes_task_id_fkey foreign key (organization_id, task_id)
    references app.tasks (organization_id, id) on delete cascade,
  constraint task_outcomes_idempotency_key_check check (length(idempotency_key) between 1 and 200),
  constraint task_outcomes_outcome_check check (jsonb_typeof(outcome) = 'object' and outcome ->> 'kind' = kind),
  constraint task_outcomes_reference_ids_check check (jsonb_typeof(reference_ids) = 'array')
);
create index task_outcomes_task_id_idx on app.task_outcomes (organization_id, task_id);

alter table app.task_outcomes enable row level security;
alter table app.task_outcomes force row level security;
create policy owner_all on app.task_outcomes to runner_owner using (true) with check (true);
create policy scoped_all on app.task_outcomes to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.task_outcomes for select to runner_api
  using (organization_id = (select app.current_organization()));
create policy admin_read on app.task_outcomes for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
grant select, insert, update, delete on app.task_outcomes to runner_scoped;
grant select on app.task_outcomes to runner_api;
grant select (organization_id, run_id, task_id, kind, task_version, graph_revision, outcome, reference_ids,
  applied_at, created_at)
  on app.task_outcomes to runner_admin;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.task_outcomes alter outcome set statistics 0, alter reference_ids set statistics 0;

comment on table app.task_outcomes is
  'What agents handed in about their run: plans, verdicts, waits, questions. Applied when the run completes.';
comment on column app.task_outcomes.organization_id is 'The organization it belongs to.';
comment on column app.task_outcomes.run_id is 'The run; it hands in one.';
comment on column app.task_outcomes.task_id is 'Its task.';
comment on column app.task_outcomes.kind is 'What was handed in.';
comment on column app.task_outcomes.idempotency_key is 'Chosen by the agent: sent again it gets the same response.';
comment on column app.task_outcomes.body_hash is 'Digest of what was sent.';
comment on column app.task_outcomes.task_version is 'The version of the task that the run saw.';
comment on column app.task_outcomes.graph_revision is 'The structure that the run saw.';
comment on column app.task_outcomes.outcome is 'What was handed in.';
comment on column app.task_outcomes.reference_ids is 'Tasks that a plan names.';
comment on column app.task_outcomes.applied_at is 'When the run completed with it.';
comment on column app.task_outcomes.created_at is 'When it was made.';

reset role;
