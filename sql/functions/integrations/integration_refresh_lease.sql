-- Takes the lease by which one process of all exchanges the tokens of a connection, without a transaction that waits for the
-- provider. p_token_version: what the caller has read; with another one there is something newer to read. A lease past its end is
-- anybody's. Returns {leased, tokenVersion, leaseExpiresAt}; leased false: read again, or wait for whoever holds it.
-- Locks: integration (its revision is read under it) → connection. Codes: 404 organization_not_found |
-- integration_not_found, 409 integration_conflict (another connection) | integration_not_ready (not_connected,
-- needs_reauthorization).
create or replace function app.integration_refresh_lease(
  p_organization_id uuid, p_integration_id uuid, p_connection_revision integer, p_token_version integer, p_lease_id uuid,
  p_seconds integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_leased boolean;
  i app.integrations := app.integration_lock(p_organization_id, p_integration_id::text, false);
  c app.integration_connections;
begin
  c := app.integration_connection_lock(i, p_connection_revision);
  v_leased := c.token_version = p_token_version
    and (c.refresh_lease_id is null or c.refresh_lease_id = p_lease_id or c.refresh_lease_expires_at <= clock_timestamp());
  if v_leased then
    update app.integration_connections
      set refresh_lease_id = p_lease_id, refresh_lease_expires_at = clock_timestamp() + make_interval(secs => p_seconds)
      where organization_id = p_organization_id and integration_id = i.id
      returning * into c;
  end if;
  return jsonb_build_object('leased', v_leased, 'tokenVersion', c.token_version,
    'leaseExpiresAt', c.refresh_lease_expires_at);
end
$$;
