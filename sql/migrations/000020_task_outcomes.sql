-- What agents hand in about their run before it ends: plans, verdicts, waits and questions; and what a task keeps between
-- a plan, its children, a verdict and the next plan.
set local role runner_owner;

alter table app.tasks
  -- Why an initiative is planned again: {reason, taskId, error}; with `asked` until one of its replans is taken for it,
  -- with `missed` when it came too late for the plan run that is under way.
  add column replan jsonb,
  -- What a verifier judges: {runId, executorProfileId, result}. Stays after a verdict, for a person who accepts the result.
  add column verification jsonb,
  add constraint tasks_plan_of_initiative_check check (phase <> 'plan' or kind = 'initiative'),
  add constraint tasks_verification_when_verify_check check (phase <> 'verify' or verification is not null),
  add constraint tasks_replan_of_initiative_check check (replan is null or kind = 'initiative');
-- What waits for a verifier, when a profile comes or goes.
create index tasks_verify_idx on app.tasks (organization_id, id) where phase = 'verify';

-- The run that left something which its end has to look at: a staged outcome, a blocking question. Most leave nothing, and
-- their end asks nobody.
alter table app.run_requests add column staged_run_id uuid;

create table app.task_outcomes (
  organization_id uuid not null,
  run_id uuid not null,
  task_id uuid not null,
  kind text not null,
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
  constraint task_outcomes_kind_check
    check (kind in ('plan', 'verification', 'waiting', 'needs_input', 'execution')),
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
grant select, insert, update, delete on app.task_outcomes to runner_scoped;
grant select on app.task_outcomes to runner_api;

-- A blocking question about a task that runs: its end looks for it.
create function app.human_inbox_items_mark_run() returns trigger
  language plpgsql set search_path = pg_catalog, pg_temp
  as $$
begin
  update app.run_requests set staged_run_id = run_id
    where organization_id = new.organization_id and task_id = new.task_id and state = 'started'
      and cancel_requested_at is null;
  return null;
end
$$;
revoke all on function app.human_inbox_items_mark_run() from public;
create trigger human_inbox_items_mark_run after insert on app.human_inbox_items
  for each row when (new.blocking and new.purpose = 'agent' and new.task_id is not null)
  execute function app.human_inbox_items_mark_run();

reset role;
