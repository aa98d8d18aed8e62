create view reporting.insight_sources with (security_barrier) as
select
  s.organization_id,
  s.id as source_id,
  s.integration_id,
  s.connector_key,
  s.provider,
  s.resource_id,
  s.dataset,
  s.environment::text as environment,
  s.timezone,
  case
    when o.status = 'suspended' then 'paused'
    when not s.in_scope or i.status is distinct from 'enabled' or c.integration_id is null or c.reauthorization_reason is not null
      or i.settings_required and i.settings is null then 'unavailable'
    else 'active' end as status,
  s.generation,
  k.covered_from,
  k.covered_until,
  s.last_completed_at,
  extract(epoch from now() - s.last_completed_at)::bigint as age_seconds,
  u.next_due_at,
  s.failure_count as failures,
  s.last_error ->> 'code' as error_code,
  (s.last_error ->> 'at')::timestamptz as error_at,
  s.created_at,
  s.updated_at
from app.insight_sources s
join app.organizations o on o.id = s.organization_id
left join app.integrations i on i.organization_id = s.organization_id and i.id = s.integration_id
left join app.integration_connections c on c.organization_id = s.organization_id and c.integration_id = s.integration_id
left join (
  select organization_id, source_id, min(due_at) as next_due_at from app.insight_cursors group by organization_id, source_id) u
  on u.organization_id = s.organization_id and u.source_id = s.id
cross join lateral (
  select min((x ->> 'start')::timestamptz) as covered_from, max((x ->> 'end')::timestamptz) as covered_until
  from jsonb_array_elements(s.coverage) x where x ->> 'state' = 'complete') k;

comment on view reporting.insight_sources is
  'What facts are collected of, and how fresh they are, without accounts.';
comment on column reporting.insight_sources.organization_id is 'The organization.';
comment on column reporting.insight_sources.source_id is 'The source.';
comment on column reporting.insight_sources.integration_id is 'The integration that collects it; null: it is gone, and what was collected stays.';
comment on column reporting.insight_sources.connector_key is 'The key of that integration, as it last was.';
comment on column reporting.insight_sources.provider is 'The provider: stripe, github and so on.';
comment on column reporting.insight_sources.resource_id is 'The thing at the provider: a store, a repository, a property.';
comment on column reporting.insight_sources.dataset is 'Which facts of it.';
comment on column reporting.insight_sources.environment is 'live, or test: of the test mode of the provider.';
comment on column reporting.insight_sources.timezone is 'The clock of its days.';
comment on column reporting.insight_sources.status is
  'active; paused: the organization is suspended; unavailable: its integration is gone, disabled or not ready, or names it no more.';
comment on column reporting.insight_sources.generation is 'Rises when what it is collected with changes.';
comment on column reporting.insight_sources.covered_from is 'Since when it is known completely, maybe with gaps; null: nothing is.';
comment on column reporting.insight_sources.covered_until is 'Until when.';
comment on column reporting.insight_sources.last_completed_at is 'When something of it was last collected to its end.';
comment on column reporting.insight_sources.age_seconds is 'How long ago that is: how fresh it is.';
comment on column reporting.insight_sources.next_due_at is 'When something of it is collected next, where it is active.';
comment on column reporting.insight_sources.failures is 'Failures in a row.';
comment on column reporting.insight_sources.error_code is 'The code of the last one; null: it works.';
comment on column reporting.insight_sources.error_at is 'When that was.';
comment on column reporting.insight_sources.created_at is 'When it was discovered.';
comment on column reporting.insight_sources.updated_at is 'When it was changed last.';
