-- Why a tool cannot be used as the integration stands, or null. c: its connection, null without one.
create or replace function app.integration_tool_unavailable(
  i app.integrations, c app.integration_connections, t app.integration_tools)
  returns text
  language sql immutable
as $$
  select case
    when not t.offered then 'not_offered'
    when t.effect = 'write' and i.access_mode = 'read_only' then 'read_only'
    when c.integration_id is null then 'not_connected'
    when not app.integration_scopes_cover(c.granted_scopes, t.required_scopes) then 'scopes_missing' end
$$;
