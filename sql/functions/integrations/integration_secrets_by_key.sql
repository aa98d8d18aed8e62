-- How many secrets need which key, of all tenants: a key that none needs may be taken out of ENCRYPTION_KEYS. Flows count as well, for
-- the ten minutes that they last. Called by operators only (npm run keys). Returns {keys: [{keyId, records}]}.
create or replace function app.integration_secrets_by_key()
  returns jsonb
  language sql stable security definer
as $$
  select jsonb_build_object('keys', coalesce(jsonb_agg(jsonb_build_object('keyId', k.key_id, 'records', k.records)
      order by k.key_id), '[]'))
    from (
      select a.key_id, count(*) as records
        from (select s.key_id from app.integration_secrets s
          union all
          select n.key_id from app.insight_pseudonym_keys n
          union all
          select o.key_id from app.integration_oauth_states o where o.key_id is not null and o.expires_at > clock_timestamp()) a
        group by a.key_id) k
$$;
