-- Spend limits of tasks: what the runs of a hierarchy have used, counted when a run reports, in hierarchies that have a
-- limit. Others count nothing, and their runs do nothing more than before.
set local role runner_owner;

alter table app.tasks
  -- Of a root: a task of its hierarchy has a spend limit.
  add column spend_limited boolean not null default false,
  -- Of the task's runs and those below it, where the root is spend_limited.
  add column spent_cost_minor_units bigint not null default 0,
  add column spent_tokens bigint not null default 0,
  -- Of those runs, how many have said what they cost. The others' cost is unknown, not zero.
  add column cost_known_run_count integer not null default 0,
  -- The budget as it was set, once an answer has raised it: each further answer gives as much again.
  add column spend_allowance jsonb,
  add constraint tasks_spend_check
    check (spent_cost_minor_units >= 0 and spent_tokens >= 0 and cost_known_run_count >= 0),
  add constraint tasks_spend_limited_when_root_check check (not spend_limited or parent_id is null);

-- The root's, when the run was started or its first limit came: the end of a run asks nobody else.
alter table app.runs add column spend_limited boolean not null default false;

create function app.tasks_watch_spend() returns trigger
  language plpgsql set search_path = pg_catalog, pg_temp
  as $$
begin
  perform app.task_spend_watch(new.organization_id, new.root_task_id);
  return null;
end
$$;
revoke all on function app.tasks_watch_spend() from public;
create trigger tasks_watch_spend_insert after insert on app.tasks
  for each row when (new.spec -> 'budget' ?| array['maxCostMinorUnits', 'maxTokens'])
  execute function app.tasks_watch_spend();
create trigger tasks_watch_spend_update after update of spec on app.tasks
  for each row when (new.spec -> 'budget' ?| array['maxCostMinorUnits', 'maxTokens'])
  execute function app.tasks_watch_spend();

reset role;
