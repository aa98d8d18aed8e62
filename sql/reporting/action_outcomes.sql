-- A day is the date that clocks of the organization's zone show: going from a point in time to that date is never ambiguous,
-- so days have 23, 24 or 25 hours as they do there. date_trunc with a zone goes back again, and errs where midnight repeats.
create view reporting.action_outcomes with (security_barrier) as
-- Asked once an organization, not once a row.
with zones as materialized (
  select o.id as organization_id, app.timezone_or_utc(o.config ->> 'timezone') as timezone
  from app.organizations o
)
select
  a.organization_id,
  (a.created_at at time zone z.timezone)::date as day,
  z.timezone,
  a.provider,
  a.tool,
  a.risk::text as risk,
  count(*) as actions,
  count(*) filter (where a.requires_approval) as approvals_required,
  count(*) filter (where a.decision = 'approved') as approved,
  count(*) filter (where a.decision = 'rejected') as rejected,
  count(*) filter (where a.status = 'expired') as expired,
  count(*) filter (where a.status = 'cancelled') as cancelled,
  count(*) filter (where a.status = 'succeeded') as succeeded,
  count(*) filter (where a.status = 'failed') as failed,
  count(*) filter (where a.status = 'not_executed') as not_executed,
  count(*) filter (where a.status = 'unknown') as unknown,
  count(*) filter (where a.status in ('awaiting_approval', 'approved', 'executing')) as under_way,
  count(*) filter (where a.reconciliation is not null) as reconciled,
  count(*) filter (where a.decision = 'approved')
    / nullif(count(*) filter (where a.decision is not null), 0)::numeric as approval_rate,
  count(*) filter (where a.status = 'succeeded')
    / nullif(count(*) filter (where a.status in ('succeeded', 'failed', 'not_executed')), 0)::numeric as success_rate,
  percentile_cont(0.5) within group (order by extract(epoch from a.decided_at - a.created_at))
    filter (where a.decided_at is not null) as median_decision_seconds,
  max(extract(epoch from a.decided_at - a.created_at)) as longest_decision_seconds
from zones z
join app.actions a on a.organization_id = z.organization_id
group by a.organization_id, (a.created_at at time zone z.timezone)::date, z.timezone, a.provider, a.tool, a.risk;

comment on view reporting.action_outcomes is
  'Summary: what became of actions, a row for each day on which some were proposed, by tool and risk.';
comment on column reporting.action_outcomes.organization_id is 'The organization.';
comment on column reporting.action_outcomes.day is 'The date in the organization''s time zone on which they were proposed.';
comment on column reporting.action_outcomes.timezone is
  'The zone whose days these are; UTC where the database does not know the organization''s.';
comment on column reporting.action_outcomes.provider is 'The provider: stripe, github and so on.';
comment on column reporting.action_outcomes.tool is 'The tool that does it.';
comment on column reporting.action_outcomes.risk is 'low, external or high.';
comment on column reporting.action_outcomes.actions is 'Actions that were proposed.';
comment on column reporting.action_outcomes.approvals_required is 'Those that an owner has to approve.';
comment on column reporting.action_outcomes.approved is 'Those that an owner approved.';
comment on column reporting.action_outcomes.rejected is 'Those that an owner rejected.';
comment on column reporting.action_outcomes.expired is 'Those that nobody decided about in time.';
comment on column reporting.action_outcomes.cancelled is 'Those that ended before they were executed, with their task, reply or connection.';
comment on column reporting.action_outcomes.succeeded is 'Those that were executed.';
comment on column reporting.action_outcomes.failed is 'Those that the provider refused, or that were not applied.';
comment on column reporting.action_outcomes.not_executed is 'Those of which a person found that they were not executed.';
comment on column reporting.action_outcomes.unknown is 'Those of which a person has to find out what became of them.';
comment on column reporting.action_outcomes.under_way is 'Those that wait for an owner or for their execution, or are being executed.';
comment on column reporting.action_outcomes.reconciled is 'Those of which a person found out what became of them.';
comment on column reporting.action_outcomes.approval_rate is
  'Approved ones by all that were decided about, from 0 to 1; null where there are none.';
comment on column reporting.action_outcomes.success_rate is
  'Succeeded ones by all that succeeded, failed or were not executed, from 0 to 1; null where there are none.';
comment on column reporting.action_outcomes.median_decision_seconds is
  'Half of the decisions came within so many seconds of the proposal; null without decisions.';
comment on column reporting.action_outcomes.longest_decision_seconds is 'The longest that a decision took.';
