-- An integration as its owner sees it: the row with its readiness, tools and connection, without the account and the
-- authorization that the connection is compared by. Reads with the rights of its caller.
create or replace function app.integration_record(i app.integrations)
  returns jsonb
  language plpgsql stable
as $$
declare
  c app.integration_connections;
begin
  select k.* into c from app.integration_connections k
    where k.organization_id = i.organization_id and k.integration_id = i.id;
  return to_jsonb(i) || jsonb_build_object(
    'readiness', app.integration_readiness(i, c),
    'connection', case when c.integration_id is not null then jsonb_build_object(
      'kind', c.kind, 'account_label', c.account_label, 'granted_scopes', c.granted_scopes, 'connected_at', c.connected_at,
      'revision', i.connection_revision) end,
    'tools', (select coalesce(jsonb_agg(to_jsonb(t) - 'organization_id' - 'integration_id' - 'place'
        || jsonb_build_object('unavailable_reason', app.integration_tool_unavailable(i, c, t)) order by t.place, t.key), '[]')
      from app.integration_tools t where t.organization_id = i.organization_id and t.integration_id = i.id));
end
$$;
