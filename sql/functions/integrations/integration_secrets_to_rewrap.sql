-- Secrets of all tenants that are wrapped by one of p_key_ids, by their place and after p_after (null: from the first): at most p_limit.
-- Only the wrapped data keys; what they protect stays where it is. The key of an organization's pseudonyms is one of its integration of
-- number zero. p_after: {organizationId, integrationId, field}.
-- Called by operators only (npm run keys). Returns {secrets: [{organizationId, integrationId, field, revision, keyId, wrappedKey}]},
-- bytes as base64.
create or replace function app.integration_secrets_to_rewrap(p_key_ids text[], p_after jsonb, p_limit integer)
  returns jsonb
  language sql stable security definer
as $$
  select jsonb_build_object('secrets', coalesce(jsonb_agg(jsonb_build_object('organizationId', s.organization_id,
      'integrationId', s.integration_id, 'field', s.field, 'revision', s.revision, 'keyId', s.key_id,
      'wrappedKey', translate(encode(s.wrapped_key, 'base64'), E'\n', ''))
      order by s.organization_id, s.integration_id, s.field), '[]'))
    from (
      select k.organization_id, k.integration_id, k.field, k.revision, k.key_id, k.wrapped_key
        from (
          select organization_id, integration_id, field, revision, key_id, wrapped_key from app.integration_secrets
          union all
          select organization_id, '00000000-0000-0000-0000-000000000000', 'pseudonym_key', 1, key_id, wrapped_key
            from app.insight_pseudonym_keys) k
        where k.key_id = any (p_key_ids)
          and (p_after is null or (k.organization_id, k.integration_id, k.field)
            > ((p_after ->> 'organizationId')::uuid, (p_after ->> 'integrationId')::uuid, p_after ->> 'field'))
        order by k.organization_id, k.integration_id, k.field
        limit p_limit) s
$$;
