-- ready | degraded → needs_reauthorization, until it is connected again. p_reason: refresh_refused, key_lost, scopes_withdrawn,
-- revoked, client_refused (the server no longer knows the client that it has registered).
-- p_token_version: of the tokens that the provider refused; a refusal of older ones says nothing, and changes nothing.
-- Null: whatever the tokens are. A repeat changes nothing. Returns {marked}.
-- Locks: organization → integration → connection. Codes: 404 organization_not_found | integration_not_found.
create or replace function app.integration_reauthorization_mark(
  p_organization_id uuid, p_integration_id uuid, p_connection_revision integer, p_token_version integer, p_reason text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  i app.integrations := app.integration_lock(p_organization_id, p_integration_id::text, true);
begin
  update app.integration_connections
    set reauthorization_reason = p_reason, reauthorization_at = clock_timestamp(), refresh_lease_id = null,
      refresh_lease_expires_at = null, degraded_at = null, degraded_code = null
    where organization_id = p_organization_id and integration_id = i.id and reauthorization_reason is null
      and i.connection_revision = p_connection_revision
      and token_version = coalesce(p_token_version, token_version);
  return jsonb_build_object('marked', found);
end
$$;
