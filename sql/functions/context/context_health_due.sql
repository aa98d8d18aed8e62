-- Organizations with a published context whose last full audit is older than p_hours, by id, after p_after: for the job that
-- schedules assessments. Reads all tenants. Codes: none.
create or replace function app.context_health_due(p_hours integer, p_after uuid, p_limit integer)
  returns setof uuid
  language sql stable security definer
as $$
  select o.id from app.organizations o
    where o.deleted_at is null and (p_after is null or o.id > p_after)
      and exists (select 1 from app.context_publications p where p.organization_id = o.id)
      and not exists (
        select 1 from app.context_health_reports h
        where h.organization_id = o.id and h.assessment = 'full_audit'
          and h.created_at > clock_timestamp() - make_interval(hours => p_hours))
    order by o.id limit p_limit
$$;
