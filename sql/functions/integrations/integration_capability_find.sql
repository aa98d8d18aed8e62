-- The organization of a capability of the gateway, by its digest: a call of the gateway names no organization. Reads all tenants, and
-- tells nothing but whose it is. Returns {organizationId}, or {} if there is none.
create or replace function app.integration_capability_find(p_token_hash text)
  returns jsonb
  language sql stable security definer
as $$
  select coalesce((
    select jsonb_build_object('organizationId', g.organization_id) from app.integration_gateway_capabilities g
      where g.token_hash = p_token_hash limit 1), '{}')
$$;
