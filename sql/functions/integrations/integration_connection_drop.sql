-- Removes the connection of an integration with all its secrets, at once. The revision rises also where there is none: what
-- was begun before ends in a conflict. The caller has locked organization and integration, and cancels the actions that wait
-- (actions_cancel_of_integrations).
create or replace function app.integration_connection_drop(i app.integrations)
  returns app.integrations
  language plpgsql
as $$
declare
  n app.integrations;
begin
  delete from app.integration_connections where organization_id = i.organization_id and integration_id = i.id;
  update app.integrations set connection_revision = connection_revision + 1, updated_at = clock_timestamp()
    where organization_id = i.organization_id and id = i.id
    returning * into n;
  return n;
end
$$;
