-- Saves exchanged tokens by compare-and-swap on the version of the tokens that they were exchanged for, before any of them is used.
-- The lease does not decide: a process that lost it may have the only tokens that still work. p_tokens: {tokenExpiresAt?,
-- refreshDueAt?, grantedScopes?, scopesInUse?}. p_secrets: see integration_secrets_write. What the provider did not give anew stays.
-- grantedScopes: where the provider told others than before. A connection that had some of scopesInUse, and has none left, has to be
-- authorized again (scopes_withdrawn); its tokens are saved all the same, since whoever revokes them needs the newest.
-- Returns {saved, tokenVersion}; saved false: others have saved newer ones, read those.
-- A connection that needs reauthorization since is not mended by tokens that were exchanged before: 409.
-- Locks: organization (with grantedScopes) → integration → connection. Codes: 404 organization_not_found | integration_not_found, 409
-- integration_conflict (another connection) | integration_not_ready (not_connected, needs_reauthorization).
create or replace function app.integration_tokens_rotate(
  p_organization_id uuid, p_integration_id uuid, p_connection_revision integer, p_token_version integer, p_tokens jsonb,
  p_secrets jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_granted jsonb := nullif(p_tokens -> 'grantedScopes', 'null');
  v_in_use constant text[] := array(select jsonb_array_elements_text(coalesce(p_tokens -> 'scopesInUse', '[]')));
  v_saved boolean;
  v_withdrawn boolean;
  i app.integrations := app.integration_lock(p_organization_id, p_integration_id::text, v_granted is not null);
  c app.integration_connections;
begin
  c := app.integration_connection_lock(i, p_connection_revision);
  v_saved := c.token_version = p_token_version;
  if v_saved then
    -- The same ones in another order are no change, which would raise the epoch.
    if v_granted is null or (v_granted @> c.granted_scopes and c.granted_scopes @> v_granted) then
      v_granted := c.granted_scopes;
    end if;
    v_withdrawn := v_in_use <> '{}' and not coalesce(v_granted ?| v_in_use, true)
      and coalesce(c.granted_scopes ?| v_in_use, true);
    update app.integration_connections
      set token_version = token_version + 1, token_expires_at = (p_tokens ->> 'tokenExpiresAt')::timestamptz,
        refresh_due_at = (p_tokens ->> 'refreshDueAt')::timestamptz, refresh_lease_id = null, refresh_lease_expires_at = null,
        degraded_at = null, degraded_code = null, granted_scopes = v_granted,
        reauthorization_reason = case when v_withdrawn then 'scopes_withdrawn' end,
        reauthorization_at = case when v_withdrawn then clock_timestamp() end
      where organization_id = p_organization_id and integration_id = i.id
      returning * into c;
    perform app.integration_secrets_write(p_organization_id, i.id, p_connection_revision, p_secrets);
  end if;
  return jsonb_build_object('saved', v_saved, 'tokenVersion', c.token_version);
end
$$;
