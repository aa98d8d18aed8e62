-- A day is the date that clocks of the organization's zone show: going from a point in time to that date is never ambiguous,
-- so days have 23, 24 or 25 hours as they do there. date_trunc with a zone goes back again, and errs where midnight repeats.
create view reporting.queue_waits with (security_barrier) as
-- Asked once an organization, not once a row.
with zones as materialized (
  select o.id as organization_id, app.timezone_or_utc(o.config ->> 'timezone') as timezone
  from app.organizations o
)
select
  s.organization_id,
  s.day,
  z.timezone,
  s.kind::text as kind,
  s.agent_profile_id,
  p.key as agent_profile_key,
  p.name as agent_profile_name,
  s.starts,
  s.wait_seconds,
  s.percentiles[1] as p50_seconds,
  s.percentiles[2] as p90_seconds,
  s.percentiles[3] as p99_seconds,
  s.longest_seconds
from (
  select
    e.organization_id,
    e.day,
    e.kind,
    e.agent_profile_id,
    count(*) as starts,
    sum(e.seconds) as wait_seconds,
    percentile_cont(array[0.5, 0.9, 0.99]) within group (order by e.seconds) as percentiles,
    max(e.seconds) as longest_seconds
  from (
    select r.organization_id, (r.started_at at time zone z.timezone)::date as day, r.kind, r.agent_profile_id,
      extract(epoch from r.started_at - q.created_at) as seconds
    from zones z
    join app.runs r on r.organization_id = z.organization_id
    join app.run_requests q on q.organization_id = r.organization_id and q.id = r.run_request_id
    where r.attempt = 1
  ) e
  group by e.organization_id, e.day, e.kind, e.agent_profile_id
) s
-- Looked up once a row of the result (offset 0): see throughput_by_day.
cross join lateral (
  select p.key, p.name from app.agent_profiles p
  where p.organization_id = s.organization_id and p.id = s.agent_profile_id offset 0
) p
cross join lateral (select z.timezone from zones z where z.organization_id = s.organization_id offset 0) z;

comment on view reporting.queue_waits is
  'Summary: how long requests waited for their first start, a row for each day and profile. Percentiles of days do not add up: for other spans take them over run_requests.';
comment on column reporting.queue_waits.organization_id is 'The organization.';
comment on column reporting.queue_waits.day is 'The date in the organization''s time zone on which they were started.';
comment on column reporting.queue_waits.timezone is
  'The zone whose days these are; UTC where the database does not know the organization''s.';
comment on column reporting.queue_waits.kind is 'task, or chat: the reply to a message.';
comment on column reporting.queue_waits.agent_profile_id is 'The profile that they are for.';
comment on column reporting.queue_waits.agent_profile_key is 'Its key.';
comment on column reporting.queue_waits.agent_profile_name is 'Its name.';
comment on column reporting.queue_waits.starts is 'Requests that were started for the first time.';
comment on column reporting.queue_waits.wait_seconds is
  'Seconds that they waited together, from their making on, also while work dispatch was stopped.';
comment on column reporting.queue_waits.p50_seconds is 'Half of them waited at most so many seconds.';
comment on column reporting.queue_waits.p90_seconds is 'Nine of ten waited at most so many seconds.';
comment on column reporting.queue_waits.p99_seconds is 'Ninety-nine of a hundred waited at most so many seconds.';
comment on column reporting.queue_waits.longest_seconds is 'The longest wait.';
