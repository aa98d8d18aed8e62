-- Moves a connector that nobody has leased to what is due next of it: sources to look for, or cursors of sources that are in scope.
-- Its provider is not asked before retry_not_before. The caller has locked the connector.
create or replace function app.insight_connector_settle(p_organization_id uuid, p_integration_id uuid)
  returns void
  language plpgsql
as $$
declare
  v_due_at timestamptz;
begin
  select min(u.due_at) into v_due_at from app.insight_sources s
    join app.insight_cursors u on u.organization_id = s.organization_id and u.source_id = s.id
    where s.organization_id = p_organization_id and s.integration_id = p_integration_id and s.in_scope;
  update app.insight_connectors k
    set due_at = case when coalesce(v_due_at, k.discovery_due_at) is not null
        then greatest(least(v_due_at, k.discovery_due_at), k.retry_not_before) end
    where k.organization_id = p_organization_id and k.integration_id = p_integration_id and k.unit_id is null;
end
$$;
