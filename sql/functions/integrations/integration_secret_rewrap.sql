-- Wraps the data key of a secret by another key, if the secret is still the one that was read: p_secret, as
-- integration_secrets_to_rewrap gave it. What was stored anew meanwhile is wrapped by the first key anyway.
-- Called by operators only (npm run keys). Returns {rewrapped}. Locks: secret.
create or replace function app.integration_secret_rewrap(
  p_organization_id uuid, p_secret jsonb, p_key_id text, p_wrapped_key text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
begin
  update app.integration_secrets set key_id = p_key_id, wrapped_key = decode(p_wrapped_key, 'base64')
    where organization_id = p_organization_id and integration_id = (p_secret ->> 'integrationId')::uuid
      and field = p_secret ->> 'field' and revision = (p_secret ->> 'revision')::integer
      and key_id = p_secret ->> 'keyId' and wrapped_key = decode(p_secret ->> 'wrappedKey', 'base64');
  if not found and p_secret ->> 'integrationId' = '00000000-0000-0000-0000-000000000000' then
    update app.insight_pseudonym_keys set key_id = p_key_id, wrapped_key = decode(p_wrapped_key, 'base64')
      where organization_id = p_organization_id
        and key_id = p_secret ->> 'keyId' and wrapped_key = decode(p_secret ->> 'wrappedKey', 'base64');
  end if;
  return jsonb_build_object('rewrapped', found);
end
$$;
