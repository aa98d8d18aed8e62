-- Whether the organization allows a provider (constraints.allowedIntegrations). An empty list allows all.
create or replace function app.integration_provider_allowed(p_organization_id uuid, p_provider text)
  returns boolean
  language sql stable
as $$
  select jsonb_array_length(coalesce(o.constraints -> 'allowedIntegrations', '[]')) = 0
      or o.constraints -> 'allowedIntegrations' ? p_provider
    from app.organizations o where o.id = p_organization_id
$$;
