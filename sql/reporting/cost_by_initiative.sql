create view reporting.cost_by_initiative with (security_barrier) as
select
  i.organization_id,
  i.id as initiative_id,
  i.identifier_scope || '-' || i.identifier_number as identifier,
  i.title,
  i.status::text as status,
  i.depth,
  i.parent_id as parent_task_id,
  i.root_task_id,
  b.tasks,
  b.tasks_completed,
  b.runs,
  b.active_runs,
  b.runs_with_unknown_cost,
  b.known_cost_minor_units,
  case when b.runs_with_unknown_cost = 0 then b.known_cost_minor_units end as cost_minor_units,
  b.input_tokens,
  b.output_tokens,
  b.tool_calls,
  b.run_seconds,
  b.first_run_at,
  b.last_run_at,
  i.created_at,
  i.completed_at
from app.tasks i
-- From each initiative down by the index of parents, so that a filter on initiatives leaves the others alone. Tasks and runs are
-- looked up once a task (offset 0): as joins the planner, who takes an organization for a tiny one, reads all of its runs for
-- each initiative.
cross join lateral (
  with recursive below as (
    select i.id, i.status
    union all
    select t.id, t.status
    from below b
    cross join lateral (
      select t.id, t.status from app.tasks t where t.organization_id = i.organization_id and t.parent_id = b.id offset 0
    ) t
  )
  select count(distinct b.id) - 1 as tasks,
    count(distinct b.id) filter (where b.status = 'completed' and b.id <> i.id) as tasks_completed,
    count(r.started_at) filter (where r.finished_at is not null) as runs,
    count(r.started_at) filter (where r.finished_at is null) as active_runs,
    count(r.started_at) filter (where r.finished_at is not null and not r.cost_known) as runs_with_unknown_cost,
    coalesce(sum(r.cost_minor_units) filter (where r.cost_known), 0) as known_cost_minor_units,
    coalesce(sum(r.input_tokens), 0) as input_tokens,
    coalesce(sum(r.output_tokens), 0) as output_tokens,
    coalesce(sum(r.tool_calls), 0) as tool_calls,
    coalesce(sum(extract(epoch from r.finished_at - r.started_at)), 0) as run_seconds,
    min(r.started_at) as first_run_at,
    max(r.started_at) as last_run_at
  from below b
  left join lateral (
    select r.started_at, r.finished_at, r.cost_known, r.cost_minor_units, r.input_tokens, r.output_tokens, r.tool_calls
    from app.runs r where r.organization_id = i.organization_id and r.task_id = b.id offset 0
  ) r on true
) b
-- The second says the same; an index knows it, so that the other tasks are not read.
where i.kind = 'initiative' and i.identifier_scope = 'I';

comment on view reporting.cost_by_initiative is
  'Summary: what initiatives cost with all that is below them, a row for each initiative. One inside another counts in both: add up rows of depth 0.';
comment on column reporting.cost_by_initiative.organization_id is 'The organization.';
comment on column reporting.cost_by_initiative.initiative_id is 'The initiative: a task_id of tasks.';
comment on column reporting.cost_by_initiative.identifier is 'Its number in the organization, for example I-3.';
comment on column reporting.cost_by_initiative.title is 'Title.';
comment on column reporting.cost_by_initiative.status is 'As in tasks.';
comment on column reporting.cost_by_initiative.depth is '0 for a root.';
comment on column reporting.cost_by_initiative.parent_task_id is 'The initiative that it is directly below.';
comment on column reporting.cost_by_initiative.root_task_id is 'The root of its hierarchy.';
comment on column reporting.cost_by_initiative.tasks is 'Tasks and initiatives below it, itself left out.';
comment on column reporting.cost_by_initiative.tasks_completed is 'How many of them are completed.';
comment on column reporting.cost_by_initiative.runs is 'Runs that are over, its own planning and verification included.';
comment on column reporting.cost_by_initiative.active_runs is 'Runs that go on; what they cost is not in here yet.';
comment on column reporting.cost_by_initiative.runs_with_unknown_cost is
  'Runs that are over and did not report their cost: it is unknown, not zero.';
comment on column reporting.cost_by_initiative.known_cost_minor_units is
  'What the other ones cost, in minor units of the currency: the least that all cost.';
comment on column reporting.cost_by_initiative.cost_minor_units is 'What all cost; null where the cost of a run is unknown.';
comment on column reporting.cost_by_initiative.input_tokens is 'Tokens that the runs read.';
comment on column reporting.cost_by_initiative.output_tokens is 'Tokens that they wrote.';
comment on column reporting.cost_by_initiative.tool_calls is 'Calls of tools that they made.';
comment on column reporting.cost_by_initiative.run_seconds is 'Seconds that they took together.';
comment on column reporting.cost_by_initiative.first_run_at is 'When the first of them started.';
comment on column reporting.cost_by_initiative.last_run_at is 'When the last of them started.';
comment on column reporting.cost_by_initiative.created_at is 'When the initiative was made.';
comment on column reporting.cost_by_initiative.completed_at is 'When it was completed.';
