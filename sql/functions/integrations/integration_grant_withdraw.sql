-- Another organization has revoked the authorization at the provider: what hung on it here when that began needs to be authorized
-- again. Returns whether there was any. Called by integration_grant_delete. Locks: organization → integrations by id → connections.
create or replace function app.integration_grant_withdraw(p_organization_id uuid, p_grant_hash text, p_began_at timestamptz)
  returns boolean
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
begin
  perform 1 from app.organizations where id = p_organization_id for no key update;
  perform 1 from app.integrations n
    where n.organization_id = p_organization_id and exists (select from app.integration_connections k
      where k.organization_id = n.organization_id and k.integration_id = n.id and k.grant_hash = p_grant_hash)
    order by n.id for no key update;
  update app.integration_connections
    set reauthorization_reason = 'revoked', reauthorization_at = clock_timestamp(), refresh_lease_id = null,
      refresh_lease_expires_at = null, degraded_at = null, degraded_code = null
    where organization_id = p_organization_id and grant_hash = p_grant_hash and connected_at <= p_began_at
      and reauthorization_reason is null;
  return found;
end
$$;
