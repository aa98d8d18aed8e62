create view reporting.insight_collections with (security_barrier) as
select
  u.organization_id,
  u.id as unit_id,
  u.integration_id,
  u.source_id,
  s.dataset,
  u.mode::text as mode,
  u.state::text as outcome,
  u.pages,
  u.records,
  u.bytes,
  u.changed,
  u.revision,
  u.error ->> 'code' as error_code,
  u.started_at,
  u.ended_at,
  extract(epoch from u.ended_at - u.started_at)::double precision as duration_seconds
from app.insight_units u
left join app.insight_sources s on s.organization_id = u.organization_id and s.id = u.source_id
where u.ended_at is not null;

comment on view reporting.insight_collections is
  'Units of collecting that have ended, of the last 30 days.';
comment on column reporting.insight_collections.organization_id is 'The organization.';
comment on column reporting.insight_collections.unit_id is 'The unit.';
comment on column reporting.insight_collections.integration_id is 'The integration.';
comment on column reporting.insight_collections.source_id is 'The source; null: it looked for sources.';
comment on column reporting.insight_collections.dataset is 'Which facts of it.';
comment on column reporting.insight_collections.mode is
  'discovery: looked for sources; tail: what is new; backfill: the past; rescan: all of it.';
comment on column reporting.insight_collections.outcome is
  'committed, failed, released (its process stopped), expired (its lease ended), or discarded: what it was claimed for had changed.';
comment on column reporting.insight_collections.pages is 'Requests that brought something.';
comment on column reporting.insight_collections.records is 'What they brought.';
comment on column reporting.insight_collections.bytes is 'How much that was.';
comment on column reporting.insight_collections.changed is 'Facts that were new or changed.';
comment on column reporting.insight_collections.revision is 'What it published; null: nothing.';
comment on column reporting.insight_collections.error_code is 'What it ended with; null: no error.';
comment on column reporting.insight_collections.started_at is 'When it was claimed.';
comment on column reporting.insight_collections.ended_at is 'When it ended.';
comment on column reporting.insight_collections.duration_seconds is 'How long it took.';
