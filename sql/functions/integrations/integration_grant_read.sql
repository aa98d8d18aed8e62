-- What of this organization hangs on the authorization that an integration is connected by: for whoever is about to revoke it.
-- Returns {grantHash, readAt, connections: [{id, key, revision}]}, the asked one first. Locks: none.
-- Codes: 404 organization_not_found | integration_not_found, 409 integration_not_ready (not_connected, no_grant).
create or replace function app.integration_grant_read(p_organization_id uuid, p_integration_ref text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  i app.integrations := app.integration_find(p_organization_id, p_integration_ref);
  c app.integration_connections;
begin
  select * into c from app.integration_connections where organization_id = p_organization_id and integration_id = i.id;
  if c.grant_hash is null then
    perform app.fail(409, 'integration_not_ready', 'The integration is not connected by an authorization that can be revoked',
      app.issue('connection', case when c.integration_id is null then 'not_connected' else 'no_grant' end,
        'there is no authorization to revoke'));
  end if;
  return jsonb_build_object('grantHash', c.grant_hash, 'readAt', statement_timestamp(), 'connections', (
    select jsonb_agg(jsonb_build_object('id', n.id, 'key', n.key, 'revision', n.connection_revision)
        order by n.id <> i.id, n.key)
      from app.integration_connections k
      join app.integrations n on n.organization_id = k.organization_id and n.id = k.integration_id
      where k.organization_id = p_organization_id and k.grant_hash = c.grant_hash));
end
$$;
