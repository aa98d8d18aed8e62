-- Days: see throughput_by_day.
create view reporting.cost_outside_initiatives with (security_barrier) as
-- Asked once an organization, not once a row.
with zones as materialized (
  select o.id as organization_id, app.timezone_or_utc(o.config ->> 'timezone') as timezone
  from app.organizations o
)
select
  s.organization_id,
  s.day,
  z.timezone,
  s.kind,
  s.runs,
  s.runs_with_unknown_cost,
  s.known_cost_minor_units,
  case when s.runs_with_unknown_cost = 0 then s.known_cost_minor_units end as cost_minor_units,
  s.input_tokens,
  s.output_tokens,
  s.tool_calls,
  s.run_seconds
from (
  select
    r.organization_id,
    (r.finished_at at time zone z.timezone)::date as day,
    r.kind::text as kind,
    count(*) as runs,
    count(*) filter (where not r.cost_known) as runs_with_unknown_cost,
    coalesce(sum(r.cost_minor_units) filter (where r.cost_known), 0) as known_cost_minor_units,
    sum(r.input_tokens) as input_tokens,
    sum(r.output_tokens) as output_tokens,
    sum(r.tool_calls) as tool_calls,
    sum(extract(epoch from r.finished_at - r.started_at)) as run_seconds
  from zones z
  join app.runs r on r.organization_id = z.organization_id
  -- Only initiatives have tasks below them: what has nothing above it and is none is outside of all.
  left join app.tasks t on t.organization_id = r.organization_id and t.id = r.task_id
  where r.finished_at is not null and (r.kind = 'chat' or t.kind = 'task' and t.parent_id is null)
  group by r.organization_id, (r.finished_at at time zone z.timezone)::date, r.kind
) s
cross join lateral (select z.timezone from zones z where z.organization_id = s.organization_id offset 0) z;

comment on view reporting.cost_outside_initiatives is
  'Summary: what work outside of initiatives cost, a row for each day and kind on which runs of it ended. With cost_by_initiative it is all that was spent.';
comment on column reporting.cost_outside_initiatives.organization_id is 'The organization.';
comment on column reporting.cost_outside_initiatives.day is
  'The date in the organization''s time zone on which the runs ended.';
comment on column reporting.cost_outside_initiatives.timezone is
  'The zone whose days these are; UTC where the database does not know the organization''s.';
comment on column reporting.cost_outside_initiatives.kind is
  'task: tasks that belong to no initiative; chat: replies to messages.';
comment on column reporting.cost_outside_initiatives.runs is 'Runs that ended, in whatever way.';
comment on column reporting.cost_outside_initiatives.runs_with_unknown_cost is
  'How many of them did not report their cost: it is unknown, not zero.';
comment on column reporting.cost_outside_initiatives.known_cost_minor_units is
  'What the other ones cost, in minor units of the currency: the least that all cost.';
comment on column reporting.cost_outside_initiatives.cost_minor_units is
  'What all cost; null where the cost of a run is unknown.';
comment on column reporting.cost_outside_initiatives.input_tokens is 'Tokens that the runs read.';
comment on column reporting.cost_outside_initiatives.output_tokens is 'Tokens that they wrote.';
comment on column reporting.cost_outside_initiatives.tool_calls is 'Calls of tools that they made.';
comment on column reporting.cost_outside_initiatives.run_seconds is 'Seconds that they took together.';
