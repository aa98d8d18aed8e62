create view reporting.schedules with (security_barrier) as
select
  s.organization_id,
  s.id as schedule_id,
  s.key,
  s.title,
  s.cron,
  s.timezone,
  s.status::text as status,
  s.overlap::text as overlap,
  s.next_run_at,
  s.last_run_at,
  s.last_task_id,
  s.failing_since,
  s.created_at,
  s.updated_at
from app.schedules s;

comment on view reporting.schedules is 'Schedules, without the task that they make.';
comment on column reporting.schedules.organization_id is 'The organization.';
comment on column reporting.schedules.schedule_id is 'The schedule.';
comment on column reporting.schedules.key is 'Its key in the organization.';
comment on column reporting.schedules.title is 'Title.';
comment on column reporting.schedules.cron is 'When it fires: minute, hour, day of the month, month, day of the week.';
comment on column reporting.schedules.timezone is 'IANA name of the zone whose clocks count.';
comment on column reporting.schedules.status is 'active or paused.';
comment on column reporting.schedules.overlap is 'skip: makes no task while its last one is open; allow: makes one anyway.';
comment on column reporting.schedules.next_run_at is 'When it fires next; null while it is paused.';
comment on column reporting.schedules.last_run_at is 'When it fired last.';
comment on column reporting.schedules.last_task_id is 'The task that it made last.';
comment on column reporting.schedules.failing_since is 'Since when its fires make no task.';
comment on column reporting.schedules.created_at is 'When it was made.';
comment on column reporting.schedules.updated_at is 'When it was changed last.';
