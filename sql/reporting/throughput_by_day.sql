-- A day is the date that clocks of the organization's zone show: going from a point in time to that date is never ambiguous,
-- so days have 23, 24 or 25 hours as they do there. date_trunc with a zone goes back again, and errs where midnight repeats.
create view reporting.throughput_by_day with (security_barrier) as
-- Asked once an organization, not once a row.
with zones as materialized (
  select o.id as organization_id, app.timezone_or_utc(o.config ->> 'timezone') as timezone
  from app.organizations o
)
select
  s.organization_id,
  s.day,
  z.timezone,
  s.agent_profile_id,
  p.key as agent_profile_key,
  p.name as agent_profile_name,
  s.tasks_completed,
  s.runs_finished,
  s.runs_succeeded,
  s.runs_failed,
  s.runs_expired,
  s.runs_cancelled,
  s.runs_succeeded / nullif(s.runs_succeeded + s.runs_failed + s.runs_expired, 0)::numeric as success_rate,
  s.chat_turns,
  s.run_seconds,
  s.input_tokens,
  s.output_tokens,
  s.known_cost_minor_units,
  s.runs_with_unknown_cost,
  s.chat_known_cost_minor_units,
  s.chat_turns_with_unknown_cost
from (
  select
    e.organization_id,
    e.day,
    e.agent_profile_id,
    count(*) filter (where e.kind is null) as tasks_completed,
    count(*) filter (where e.kind = 'task') as runs_finished,
    count(*) filter (where e.kind = 'task' and e.status = 'succeeded') as runs_succeeded,
    count(*) filter (where e.kind = 'task' and e.status = 'failed') as runs_failed,
    count(*) filter (where e.kind = 'task' and e.status = 'expired') as runs_expired,
    count(*) filter (where e.kind = 'task' and e.status = 'cancelled') as runs_cancelled,
    count(*) filter (where e.kind = 'chat') as chat_turns,
    coalesce(sum(e.seconds), 0) as run_seconds,
    coalesce(sum(e.input_tokens), 0) as input_tokens,
    coalesce(sum(e.output_tokens), 0) as output_tokens,
    coalesce(sum(e.cost_minor_units) filter (where e.cost_known), 0) as known_cost_minor_units,
    count(*) filter (where not e.cost_known) as runs_with_unknown_cost,
    coalesce(sum(e.cost_minor_units) filter (where e.kind = 'chat' and e.cost_known), 0) as chat_known_cost_minor_units,
    count(*) filter (where e.kind = 'chat' and not e.cost_known) as chat_turns_with_unknown_cost
  from (
    select r.organization_id, (r.finished_at at time zone z.timezone)::date as day, r.agent_profile_id, r.kind, r.status,
      extract(epoch from r.finished_at - r.started_at) as seconds, r.input_tokens, r.output_tokens, r.cost_minor_units,
      r.cost_known
    from zones z
    join app.runs r on r.organization_id = z.organization_id
    where r.finished_at is not null
    union all
    select t.organization_id, (t.completed_at at time zone z.timezone)::date, t.owner_agent_profile_id, null,
      null, null, null, null, null, null
    from zones z
    join app.tasks t on t.organization_id = z.organization_id
    where t.status = 'completed'
  ) e
  group by e.organization_id, e.day, e.agent_profile_id
) s
-- Looked up once a row of the result (offset 0). As a join the planner, who expects one profile where an organization has
-- several, reads all runs again for each of them.
cross join lateral (
  select p.key, p.name from app.agent_profiles p
  where p.organization_id = s.organization_id and p.id = s.agent_profile_id offset 0
) p
cross join lateral (select z.timezone from zones z where z.organization_id = s.organization_id offset 0) z;

comment on view reporting.throughput_by_day is
  'Summary: what got done, a row for each day and profile on which runs ended or tasks were completed. Runs are those of tasks; time, tokens and costs are those of chat turns too.';
comment on column reporting.throughput_by_day.organization_id is 'The organization.';
comment on column reporting.throughput_by_day.day is
  'The date in the organization''s time zone on which the runs ended and the tasks were completed.';
comment on column reporting.throughput_by_day.timezone is
  'The zone whose days these are; UTC where the database does not know the organization''s.';
comment on column reporting.throughput_by_day.agent_profile_id is 'The profile of the runs, and the owner of the tasks.';
comment on column reporting.throughput_by_day.agent_profile_key is 'Its key.';
comment on column reporting.throughput_by_day.agent_profile_name is 'Its name.';
comment on column reporting.throughput_by_day.tasks_completed is 'Tasks and initiatives of the profile that were completed.';
comment on column reporting.throughput_by_day.runs_finished is 'Runs of tasks that ended, in whatever way.';
comment on column reporting.throughput_by_day.runs_succeeded is 'Runs that succeeded.';
comment on column reporting.throughput_by_day.runs_failed is 'Runs that failed, also by their acceptance criteria.';
comment on column reporting.throughput_by_day.runs_expired is 'Runs whose worker was lost.';
comment on column reporting.throughput_by_day.runs_cancelled is 'Runs that were cancelled.';
comment on column reporting.throughput_by_day.success_rate is
  'Succeeded runs by all that succeeded, failed or expired, from 0 to 1; null where there are none. Cancelled ones do not count.';
comment on column reporting.throughput_by_day.chat_turns is 'Runs that replied to a message in a chat and ended, in whatever way.';
comment on column reporting.throughput_by_day.run_seconds is 'Seconds that runs and chat turns took together.';
comment on column reporting.throughput_by_day.input_tokens is 'Tokens that they read.';
comment on column reporting.throughput_by_day.output_tokens is 'Tokens that they wrote.';
comment on column reporting.throughput_by_day.known_cost_minor_units is
  'What those runs and chat turns cost whose cost was reported, in minor units of the currency.';
comment on column reporting.throughput_by_day.runs_with_unknown_cost is
  'Runs and chat turns whose cost was not reported: it is unknown, not zero.';
comment on column reporting.throughput_by_day.chat_known_cost_minor_units is 'What of that cost chat turns cost.';
comment on column reporting.throughput_by_day.chat_turns_with_unknown_cost is 'How many of those are chat turns.';
