-- Organizations whose files are to be compared with the rows that name them, once a day: p_organizations that follow p_after (null: from
-- the first one). Reads only; insight_sweep_begin decides.
create or replace function app.insight_sweeps_due(p_organizations integer, p_after uuid default null)
  returns table (organization_id uuid)
  language sql stable security definer
as $$
  select h.organization_id from app.insight_heads h
    where h.sweep_at <= clock_timestamp() and h.organization_id > coalesce(p_after, '00000000-0000-0000-0000-000000000000')
      and exists (select from app.organizations o where o.id = h.organization_id and o.deleted_at is null)
    order by h.organization_id limit p_organizations
$$;
