-- Notes scopes that the provider said are missing when it refused a call: the next authorization asks for them, and forgets them.
-- p_scopes: array of text, cleaned. Those beyond 50 in all are left out. A repeat changes nothing, and nothing is noted of another
-- connection than the one that was used. Raises no epoch. Returns {noted}.
-- Locks: integration → connection. Codes: 404 organization_not_found | integration_not_found.
create or replace function app.integration_scopes_note(
  p_organization_id uuid, p_integration_id uuid, p_connection_revision integer, p_scopes jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  i app.integrations := app.integration_lock(p_organization_id, p_integration_id::text, false);
begin
  update app.integration_connections
    set missing_scopes = (
      select jsonb_agg(s.scope order by s.place)
        from (
          select a.scope, min(a.place) as place
            from jsonb_array_elements_text(missing_scopes || p_scopes) with ordinality as a (scope, place)
            group by a.scope
            order by min(a.place)
            limit 50) s)
    where organization_id = p_organization_id and integration_id = i.id and i.connection_revision = p_connection_revision
      and not missing_scopes @> p_scopes;
  return jsonb_build_object('noted', found);
end
$$;
