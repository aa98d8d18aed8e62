-- The organization of a flow, by the digest of its ticket, its state or its request token (p_kind): whoever comes back from a provider
-- names nothing else. Reads all tenants, and tells nothing but whose it is. Returns {organizationId, id}, or {} if there is none.
create or replace function app.integration_oauth_find(p_kind text, p_hash text)
  returns jsonb
  language sql stable security definer
as $$
  -- Each by its index.
  select coalesce((
    select jsonb_build_object('organizationId', f.organization_id, 'id', f.id)
      from (
        select o.organization_id, o.id from app.integration_oauth_states o where p_kind = 'ticket' and o.ticket_hash = p_hash
        union all
        select o.organization_id, o.id from app.integration_oauth_states o where p_kind = 'state' and o.state_hash = p_hash
        union all
        select o.organization_id, o.id from app.integration_oauth_states o
          where p_kind = 'request_token' and o.request_token_hash = p_hash) f
      limit 1), '{}')
$$;
