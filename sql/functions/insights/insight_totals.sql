-- How collecting goes in all organizations: {sources: {active, paused, unavailable}, failing, overdueSeconds}. Of sources and
-- connectors 10,000 each are looked at. unavailable: out of scope, or of a connector that nobody looks at until something changes.
-- failing: connectors whose last attempt failed, of whatever. overdueSeconds: how long the one has waited that is due longest (0:
-- none). For metrics.
create or replace function app.insight_totals()
  returns jsonb
  language sql stable security definer
as $$
  with sources as (
    select s.organization_id, s.integration_id, s.failure_count, case
        when o.status = 'suspended' then 'paused'
        when k.due_at is null or not s.in_scope then 'unavailable'
        else 'active' end as status
      from (select organization_id, integration_id, in_scope, failure_count from app.insight_sources limit 10000) s
      join app.organizations o on o.id = s.organization_id and o.deleted_at is null
      left join app.insight_connectors k on k.organization_id = s.organization_id and k.integration_id = s.integration_id)
  select jsonb_build_object(
    'sources', jsonb_build_object('active', count(*) filter (where s.status = 'active'),
      'paused', count(*) filter (where s.status = 'paused'), 'unavailable', count(*) filter (where s.status = 'unavailable')),
    'failing', (select count(*) from (
      select f.organization_id, f.integration_id from sources f where f.status = 'active' and f.failure_count > 0
      union
      select k.organization_id, k.integration_id
        from (select organization_id, integration_id, due_at, failure_count from app.insight_connectors limit 10000) k
        where k.failure_count > 0 and k.due_at is not null) x),
    'overdueSeconds', coalesce((
      select greatest(extract(epoch from clock_timestamp() - min(k.due_at)), 0) from app.insight_connectors k), 0))
    from sources s
$$;
