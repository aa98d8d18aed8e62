-- A day is the date that clocks of the organization's zone show: going from a point in time to that date is never ambiguous,
-- so days have 23, 24 or 25 hours as they do there. date_trunc with a zone goes back again, and errs where midnight repeats.
create view reporting.waiting_for_people with (security_barrier) as
-- Asked once an organization, not once a row.
with zones as materialized (
  select o.id as organization_id, app.timezone_or_utc(o.config ->> 'timezone') as timezone
  from app.organizations o
)
select
  i.organization_id,
  (i.created_at at time zone z.timezone)::date as day,
  z.timezone,
  i.kind::text as kind,
  i.purpose::text as purpose,
  i.blocking,
  count(*) as items,
  count(*) filter (where i.status = 'open') as items_open,
  count(*) filter (where i.status in ('responded', 'acknowledged')) as items_answered,
  count(*) filter (where i.status in ('resolved', 'cancelled')) as items_closed,
  count(distinct i.task_id) as tasks,
  coalesce(sum(extract(epoch from i.responded_at - i.created_at))
    filter (where i.status in ('responded', 'acknowledged')), 0) as answered_wait_seconds,
  percentile_cont(0.5) within group (order by extract(epoch from i.responded_at - i.created_at))
    filter (where i.status in ('responded', 'acknowledged')) as median_answer_seconds,
  max(extract(epoch from i.responded_at - i.created_at))
    filter (where i.status in ('responded', 'acknowledged')) as longest_answer_seconds,
  coalesce(sum(extract(epoch from now() - i.created_at)) filter (where i.status = 'open'), 0) as open_wait_seconds,
  min(i.created_at) filter (where i.status = 'open') as oldest_open_at
from zones z
join app.human_inbox_items i on i.organization_id = z.organization_id
group by i.organization_id, (i.created_at at time zone z.timezone)::date, z.timezone, i.kind, i.purpose, i.blocking;

comment on view reporting.waiting_for_people is
  'Summary: how long people were waited for, a row for each day on which something was asked, by what it was.';
comment on column reporting.waiting_for_people.organization_id is 'The organization.';
comment on column reporting.waiting_for_people.day is 'The date in the organization''s time zone on which it was asked.';
comment on column reporting.waiting_for_people.timezone is
  'The zone whose days these are; UTC where the database does not know the organization''s.';
comment on column reporting.waiting_for_people.kind is 'question, notification, approval or reconciliation.';
comment on column reporting.waiting_for_people.purpose is
  'Why it was asked: repair, budget, needs_input, prerequisite, agent, schedule or failure.';
comment on column reporting.waiting_for_people.blocking is 'Whether tasks waited for the answer.';
comment on column reporting.waiting_for_people.items is 'Items that were asked.';
comment on column reporting.waiting_for_people.items_open is 'Items that still wait.';
comment on column reporting.waiting_for_people.items_answered is 'Items that a person answered or acknowledged.';
comment on column reporting.waiting_for_people.items_closed is 'Items that were over without an answer.';
comment on column reporting.waiting_for_people.tasks is 'Tasks that they are about.';
comment on column reporting.waiting_for_people.answered_wait_seconds is 'Seconds that the answered ones waited together.';
comment on column reporting.waiting_for_people.median_answer_seconds is
  'Half of the answers came within so many seconds; null without answers.';
comment on column reporting.waiting_for_people.longest_answer_seconds is 'The longest that an answer took.';
comment on column reporting.waiting_for_people.open_wait_seconds is
  'Seconds that the open ones have waited together so far.';
comment on column reporting.waiting_for_people.oldest_open_at is 'When the oldest open one was asked.';
