-- The encrypted secrets of a connection, for whoever calls the provider now: the only way to them. Without locks: refresh and
-- disconnect decide again. Returns {connection: {kind, tokenVersion, tokenExpiresAt, grantedScopes, missingScopes,
-- subjectHash}, integration: {id, key, provider, status, accessMode, services, settings, readiness}, secrets: [{field, revision,
-- keyId, wrappedKey, ciphertext}]}, bytes as base64.
-- Codes: 403 provider_forbidden, 404 organization_not_found | integration_not_found, 409 integration_conflict (another connection)
-- | integration_not_ready (not_connected).
create or replace function app.integration_secrets_read(
  p_organization_id uuid, p_integration_id uuid, p_connection_revision integer)
  returns jsonb
  language plpgsql stable security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  i app.integrations;
  c app.integration_connections;
begin
  if not exists (select 1 from app.organizations where id = p_organization_id and deleted_at is null) then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  select * into i from app.integrations where organization_id = p_organization_id and id = p_integration_id;
  if not found then
    perform app.fail(404, 'integration_not_found', 'Integration not found');
  end if;
  perform app.integration_provider_require(p_organization_id, i.provider);
  perform app.integration_revision_require(i, p_connection_revision);
  select * into c from app.integration_connections where organization_id = p_organization_id and integration_id = i.id;
  if not found then
    perform app.fail(409, 'integration_not_ready', 'The integration is not connected',
      app.issue('connection', 'not_connected', 'connect it first'));
  end if;
  return jsonb_build_object(
    'connection', jsonb_build_object('kind', c.kind, 'tokenVersion', c.token_version, 'tokenExpiresAt', c.token_expires_at,
      'grantedScopes', c.granted_scopes, 'missingScopes', c.missing_scopes, 'subjectHash', c.subject_hash),
    'integration', jsonb_build_object('id', i.id, 'key', i.key, 'provider', i.provider, 'status', i.status,
      'accessMode', i.access_mode, 'services', i.services, 'settings', i.settings,
      'readiness', app.integration_readiness(i, c)),
    'secrets', (select coalesce(jsonb_agg(jsonb_build_object('field', s.field, 'revision', s.revision, 'keyId', s.key_id,
        'wrappedKey', translate(encode(s.wrapped_key, 'base64'), E'\n', ''),
        'ciphertext', translate(encode(s.ciphertext, 'base64'), E'\n', '')) order by s.field), '[]')
      from app.integration_secrets s where s.organization_id = p_organization_id and s.integration_id = i.id));
end
$$;
