-- Months of sources with p_segments published files or more: of each of p_organizations organizations that follow p_after (null: from the
-- first one) those p_rows that have most. One that is being compacted, or waits, is none. Reads only; insight_compaction_claim decides.
-- Returns {partitions: [{organizationId, sourceId, month}], after}: after which organization the next read goes on, null at the end.
create or replace function app.insight_compactions_due(
  p_segments integer, p_organizations integer, p_rows integer, p_after uuid default null)
  returns jsonb
  language sql stable security definer
as $$
  with page as (
    select h.organization_id from app.insight_heads h
      where h.revision > 0 and h.organization_id > coalesce(p_after, '00000000-0000-0000-0000-000000000000')
        and exists (select from app.organizations o where o.id = h.organization_id and o.deleted_at is null)
      order by h.organization_id limit p_organizations),
  due as (
    select p.organization_id, d.*, row_number() over (partition by p.organization_id order by d.files desc, d.source_id, d.month) as turn
      from page p cross join lateral (
        select g.source_id, g.month, count(*) as files from app.insight_segments g
          where g.organization_id = p.organization_id and not g.staged and g.retired_at is null
            and not exists (
              select from app.insight_compactions k
                where k.organization_id = g.organization_id and k.source_id = g.source_id and k.month = g.month
                  and greatest(k.lease_expires_at, k.due_at) > clock_timestamp())
          group by g.source_id, g.month having count(*) >= p_segments
          order by count(*) desc, g.source_id, g.month limit p_rows) d)
  select jsonb_build_object(
    'partitions', coalesce((
      select jsonb_agg(jsonb_build_object('organizationId', organization_id, 'sourceId', source_id, 'month', month)
        order by turn, organization_id) from due), '[]'),
    'after', (select max(organization_id::text) from page having count(*) = p_organizations))
$$;
