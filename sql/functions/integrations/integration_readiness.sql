-- How far an integration is, computed from the facts and never set (docs/interface.md 2.13). c: its connection, null without one.
create or replace function app.integration_readiness(i app.integrations, c app.integration_connections)
  returns text
  language sql immutable
as $$
  select case
    when c.integration_id is null then 'not_connected'
    when c.reauthorization_reason is not null then 'needs_reauthorization'
    when i.settings_required and i.settings is null then 'needs_configuration'
    when c.degraded_at is not null then 'degraded'
    else 'ready' end
$$;
