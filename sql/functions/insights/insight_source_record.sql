-- A source as it is shown: {id, connectorKey, provider, accountId, resourceId, dataset, environment, timezone, status, generation,
-- coverage, collection: {lastCompletedAt, nextDueAt, leased, lastError}}. nextDueAt: of what comes first; null where nothing is
-- collected.
create or replace function app.insight_source_record(s app.insight_sources)
  returns jsonb
  language plpgsql stable
as $$
declare
  v_now constant timestamptz := clock_timestamp();
  v_status text;
  v_next_due_at timestamptz;
  o app.organizations;
  i app.integrations;
  c app.integration_connections;
  k app.insight_connectors;
begin
  select * into o from app.organizations where id = s.organization_id;
  select * into i from app.integrations where organization_id = s.organization_id and id = s.integration_id;
  select * into c from app.integration_connections where organization_id = s.organization_id and integration_id = s.integration_id;
  select * into k from app.insight_connectors where organization_id = s.organization_id and integration_id = s.integration_id;
  v_status := app.insight_source_status(s, o, i, c);
  if v_status = 'active' then
    select greatest(min(u.due_at), k.retry_not_before) into v_next_due_at from app.insight_cursors u
      where u.organization_id = s.organization_id and u.source_id = s.id
      having min(u.due_at) is not null;
  end if;
  return jsonb_build_object('id', s.id, 'connectorKey', s.connector_key, 'provider', s.provider, 'accountId', s.account_id,
    'resourceId', s.resource_id, 'dataset', s.dataset, 'environment', s.environment, 'timezone', s.timezone, 'status', v_status,
    'generation', s.generation, 'coverage', s.coverage, 'collection', jsonb_build_object(
      'lastCompletedAt', s.last_completed_at, 'nextDueAt', v_next_due_at,
      'leased', k.unit_id is not null and k.lease_expires_at > v_now and exists (select from app.insight_units u
        where u.organization_id = s.organization_id and u.id = k.unit_id and u.source_id = s.id),
      'lastError', s.last_error));
end
$$;
