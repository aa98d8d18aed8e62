-- Makes the integrations that a completed onboarding means to connect, and that are not there: p_providers as integration_create takes
-- integrations, each with the key of its provider. One of which there is an integration, by its key or of its provider, is left as it
-- is; so is one that the organization does not allow, which is no reason to refuse a completion. The caller has locked the
-- organization.
create or replace function app.onboarding_integrations_create(o app.onboardings, p_providers jsonb)
  returns void
  language sql
as $$
  select app.integration_create(o.organization_id, p.value || jsonb_build_object('departments', i -> 'departments'))
    from jsonb_array_elements(o.integrations) i
    join jsonb_array_elements(p_providers) p(value) on p.value ->> 'provider' = i ->> 'integrationKey'
    where i ->> 'disposition' in ('connect_now', 'connect_later')
      and app.integration_provider_allowed(o.organization_id, p.value ->> 'provider')
      and not app.integration_hosts_blocked(o.organization_id, p.value -> 'hosts')
      and not exists (select from app.integrations n
        where n.organization_id = o.organization_id and p.value ->> 'provider' in (n.key, n.provider))
    order by i ->> 'integrationKey'
$$;
