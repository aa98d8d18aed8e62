-- Stores secrets of a connection, in place of those of the same fields. p_secrets: [{field, keyId, wrappedKey, ciphertext}], bytes
-- as base64. The caller has locked the connection.
create or replace function app.integration_secrets_write(
  p_organization_id uuid, p_integration_id uuid, p_revision integer, p_secrets jsonb)
  returns void
  language sql
as $$
  insert into app.integration_secrets (organization_id, integration_id, field, revision, key_id, wrapped_key, ciphertext)
    select p_organization_id, p_integration_id, s ->> 'field', p_revision, s ->> 'keyId', decode(s ->> 'wrappedKey', 'base64'),
        decode(s ->> 'ciphertext', 'base64')
      from jsonb_array_elements(p_secrets) s
    on conflict (organization_id, integration_id, field) do update
      set revision = excluded.revision, key_id = excluded.key_id, wrapped_key = excluded.wrapped_key,
        ciphertext = excluded.ciphertext, created_at = now()
$$;
