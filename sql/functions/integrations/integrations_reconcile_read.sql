-- What a health report compares with the context: the integrations of an organization by key, how far each is and what it was said to
-- mean, and the repairs that wait for a report. Returns {integrations: [{key, status, readiness, mapping}], repairs: [{id, mapping}]}.
-- Locks: none.
create or replace function app.integrations_reconcile_read(p_organization_id uuid)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
begin
  return jsonb_build_object(
    'integrations', (select coalesce(jsonb_agg(jsonb_build_object('key', i.key, 'status', i.status,
        'readiness', app.integration_readiness(i, c), 'mapping', i.context_mapping) order by i.key), '[]')
      from app.integrations i
      left join app.integration_connections c on c.organization_id = i.organization_id and c.integration_id = i.id
      where i.organization_id = p_organization_id),
    'repairs', (select coalesce(jsonb_agg(jsonb_build_object('id', r.id, 'mapping', r.mapping)), '[]')
      from app.integration_context_repairs r where r.organization_id = p_organization_id and r.status = 'queued'));
end
$$;
