-- Whether the integration that a disposition is about is there, enabled and usable: the one with its key, or any of the provider that
-- its key names.
create or replace function app.onboarding_integration_usable(p_organization_id uuid, p_integration_key text)
  returns boolean
  language sql stable
as $$
  select exists (
    select from app.integrations i
      join app.integration_connections c on c.organization_id = i.organization_id and c.integration_id = i.id
      where i.organization_id = p_organization_id and p_integration_key in (i.key, i.provider) and i.status = 'enabled'
        and app.integration_readiness(i, c) in ('ready', 'degraded'))
$$;
