create view reporting.organizations with (security_barrier) as
select
  o.id as organization_id,
  -- Not the column itself: the unique index, which holds all tenants' slugs, would be asked before whose a row is.
  o.slug || '' as slug,
  o.name,
  o.status::text as status,
  -- As the summaries have it: one that this Postgres does not know would make queries fail.
  app.timezone_or_utc(o.config ->> 'timezone') as timezone,
  (o.config #>> '{limits,maxConcurrentRuns}')::integer as max_concurrent_runs,
  o.onboarded_at,
  o.work_dispatch_stopped_at,
  o.created_at,
  o.updated_at
from app.organizations o;

comment on view reporting.organizations is 'The organizations that the login reads.';
comment on column reporting.organizations.organization_id is 'The organization.';
comment on column reporting.organizations.slug is 'Stable name in addresses.';
comment on column reporting.organizations.name is 'Name.';
comment on column reporting.organizations.status is 'onboarding, active or suspended.';
comment on column reporting.organizations.timezone is
  'The zone whose days the summaries count; UTC where the database does not know the one that is set.';
comment on column reporting.organizations.max_concurrent_runs is 'How many task runs it may have at once.';
comment on column reporting.organizations.onboarded_at is 'When its onboarding was completed.';
comment on column reporting.organizations.work_dispatch_stopped_at is
  'Since when its owner has stopped work dispatch; null otherwise.';
comment on column reporting.organizations.created_at is 'When it was made.';
comment on column reporting.organizations.updated_at is 'When it was changed last.';
