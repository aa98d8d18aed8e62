create view reporting.run_logs with (security_barrier) as
select
  l.organization_id,
  l.run_id,
  l.sequence,
  l.category::text as category,
  l.status::text as status,
  l.occurred_at
from app.run_logs l;

comment on view reporting.run_logs is 'Log entries of runs, without their texts.';
comment on column reporting.run_logs.organization_id is 'The organization.';
comment on column reporting.run_logs.run_id is 'The run.';
comment on column reporting.run_logs.sequence is 'Its place in the log.';
comment on column reporting.run_logs.category is 'planning, execution, tool, verification, sync or system.';
comment on column reporting.run_logs.status is 'running, completed, failed or skipped.';
comment on column reporting.run_logs.occurred_at is 'When it happened, by the clock of the worker.';
