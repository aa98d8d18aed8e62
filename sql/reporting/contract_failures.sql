-- A day is the date that clocks of the organization's zone show: going from a point in time to that date is never ambiguous,
-- so days have 23, 24 or 25 hours as they do there. date_trunc with a zone goes back again, and errs where midnight repeats.
create view reporting.contract_failures with (security_barrier) as
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
  s.evaluator,
  s.criterion,
  s.checks,
  s.failures,
  s.failures / s.checks::numeric as failure_rate,
  s.tasks,
  s.tasks_failed,
  s.last_failed_at
from (
  select
    e.organization_id,
    e.day,
    e.agent_profile_id,
    e.evaluator,
    e.criterion,
    count(*) as checks,
    count(*) filter (where e.status = 'failed') as failures,
    count(distinct e.task_id) as tasks,
    count(distinct e.task_id) filter (where e.status = 'failed') as tasks_failed,
    max(e.finished_at) filter (where e.status = 'failed') as last_failed_at
  from (
    select r.organization_id, (r.finished_at at time zone z.timezone)::date as day, r.agent_profile_id, r.task_id,
      r.finished_at, c.evaluator, c.status, c.criterion
    from zones z
    join app.runs r on r.organization_id = z.organization_id
    -- One walk over the runs for both, and no task is read for a file that was there.
    cross join lateral (
      select k.value ->> 'evaluator', k.value ->> 'status', coalesce(k.value #>> '{evidence,0,path}',
        (select t.spec #>> array['acceptanceCriteria', k.value ->> 'criterionIndex', 'path'] from app.tasks t
          where t.organization_id = r.organization_id and t.id = r.task_id),
        'criterion ' || (k.value ->> 'criterionIndex'))
      from jsonb_path_query(r.output, '$.result.completion.checks[*]') k(value)
      where r.mode = 'execute'
      union all
      select 'agent', r.output #>> '{result,verdict}', 'verdict'
      where r.mode = 'verify' and r.output #>> '{result,verdict}' is not null
    ) c(evaluator, status, criterion)
    where r.kind = 'task' and r.mode in ('execute', 'verify') and r.finished_at is not null
  ) e
  group by e.organization_id, e.day, e.agent_profile_id, e.evaluator, e.criterion
) s
-- Looked up once a row of the result (offset 0): see throughput_by_day.
cross join lateral (
  select p.key, p.name from app.agent_profiles p
  where p.organization_id = s.organization_id and p.id = s.agent_profile_id offset 0
) p
cross join lateral (select z.timezone from zones z where z.organization_id = s.organization_id offset 0) z;

comment on view reporting.contract_failures is
  'Summary: which acceptance criteria results failed, a row for each day, profile and criterion that was checked.';
comment on column reporting.contract_failures.organization_id is 'The organization.';
comment on column reporting.contract_failures.day is 'The date in the organization''s time zone on which the runs ended.';
comment on column reporting.contract_failures.timezone is
  'The zone whose days these are; UTC where the database does not know the organization''s.';
comment on column reporting.contract_failures.agent_profile_id is
  'The profile whose result was checked; for verdicts, the one that checked.';
comment on column reporting.contract_failures.agent_profile_key is 'Its key.';
comment on column reporting.contract_failures.agent_profile_name is 'Its name.';
comment on column reporting.contract_failures.evaluator is
  'backend: from the stored bytes; agent: the verdict of another agent.';
comment on column reporting.contract_failures.criterion is
  'The path of the file that the criterion is about; verdict for the verdict on the whole.';
comment on column reporting.contract_failures.checks is 'How often it was checked.';
comment on column reporting.contract_failures.failures is 'How often it failed.';
comment on column reporting.contract_failures.failure_rate is 'The failures by the checks, from 0 to 1.';
comment on column reporting.contract_failures.tasks is 'Tasks whose results were checked.';
comment on column reporting.contract_failures.tasks_failed is 'Tasks whose results failed it.';
comment on column reporting.contract_failures.last_failed_at is 'When it failed last.';
