-- What connecting this account would do, for whoever has to bind secrets to a revision before they are handed in. Changes nothing;
-- integration_connect and integration_oauth_complete decide again, and refuse where it was decided otherwise.
-- Returns {nextRevision}. p_connection: {kind, subjectHash, grantedScopes}.
-- Locks: none. Codes: 404 organization_not_found | integration_not_found.
create or replace function app.integration_connection_plan(p_organization_id uuid, p_integration_ref text, p_connection jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  i app.integrations := app.integration_find(p_organization_id, p_integration_ref);
  c app.integration_connections;
begin
  select * into c from app.integration_connections where organization_id = p_organization_id and integration_id = i.id;
  return jsonb_build_object('nextRevision', app.integration_next_revision(i, c, p_connection));
end
$$;
