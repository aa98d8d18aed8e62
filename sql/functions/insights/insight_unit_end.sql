-- Ends a unit, and gives its connector back: leased → p_state. The caller has locked the connector, which is the unit's.
create or replace function app.insight_unit_end(u app.insight_units, p_state text, p_facts jsonb default '{}')
  returns void
  language plpgsql
as $$
begin
  update app.insight_units
    set state = p_state, ended_at = clock_timestamp(), pages = coalesce((p_facts ->> 'pages')::integer, pages),
      records = coalesce((p_facts ->> 'records')::integer, records), bytes = coalesce((p_facts ->> 'bytes')::bigint, bytes),
      changed = coalesce((p_facts ->> 'changed')::integer, changed), revision = (p_facts ->> 'revision')::bigint,
      error = nullif(p_facts -> 'error', 'null')
    where organization_id = u.organization_id and id = u.id;
  update app.insight_connectors set unit_id = null, lease_expires_at = null
    where organization_id = u.organization_id and integration_id = u.integration_id;
end
$$;
