-- active; paused: its organization is suspended; unavailable: its integration is gone, disabled, forbidden or not ready, or names it no
-- more. i and c: its integration and that one's connection, null without one.
create or replace function app.insight_source_status(
  s app.insight_sources, o app.organizations, i app.integrations, c app.integration_connections)
  returns text
  language sql immutable
as $$
  select case
    when o.status = 'suspended' then 'paused'
    when i.id is null or not s.in_scope
      or app.integration_unavailable(i, c, null, o.constraints -> 'allowedIntegrations') is not null then 'unavailable'
    else 'active' end
$$;
