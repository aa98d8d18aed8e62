-- The key by which an organization's customers have pseudonyms, as it is wrapped. p_sealed: {keyId, wrappedKey, ciphertext}, bytes as
-- base64: kept where there is none yet; null asks alone. Returns {sealed}, null without one. Locks: none.
create or replace function app.insight_pseudonym_key_read(p_organization_id uuid, p_sealed jsonb default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
begin
  if p_sealed is not null then
    insert into app.insight_pseudonym_keys (organization_id, key_id, wrapped_key, ciphertext)
      values (p_organization_id, p_sealed ->> 'keyId', decode(p_sealed ->> 'wrappedKey', 'base64'),
        decode(p_sealed ->> 'ciphertext', 'base64'))
      on conflict do nothing;
  end if;
  return jsonb_build_object('sealed', (
    select jsonb_build_object('keyId', k.key_id, 'wrappedKey', encode(k.wrapped_key, 'base64'), 'ciphertext', encode(k.ciphertext, 'base64'))
      from app.insight_pseudonym_keys k where k.organization_id = p_organization_id));
end
$$;
