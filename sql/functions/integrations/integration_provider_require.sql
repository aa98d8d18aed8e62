-- Refuses a provider that the organization does not allow. Codes: 403 provider_forbidden.
create or replace function app.integration_provider_require(p_organization_id uuid, p_provider text)
  returns void
  language plpgsql
as $$
begin
  if not app.integration_provider_allowed(p_organization_id, p_provider) then
    perform app.fail(403, 'provider_forbidden', 'The organization does not allow this provider',
      app.issue('provider', 'not_allowed', 'is not among constraints.allowedIntegrations'));
  end if;
end
$$;
