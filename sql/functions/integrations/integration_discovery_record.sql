-- Records what the provider said when it was asked, whatever the integration's status. p_discovery: {status: ok} | {status:
-- failed, error: {code, message}}, without any text of the provider. p_tools, of providers that have their own: see
-- integration_tools_write; null leaves the tools as they are. Returns {integration}.
-- Locks: organization → integration. Codes: 404 organization_not_found | integration_not_found, 409 integration_conflict (the
-- connection that was asked by is another one now).
create or replace function app.integration_discovery_record(
  p_organization_id uuid, p_integration_ref text, p_connection_revision integer, p_discovery jsonb,
  p_tools jsonb default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  i app.integrations := app.integration_lock(p_organization_id, p_integration_ref, true);
begin
  perform app.integration_revision_require(i, p_connection_revision);
  if p_tools is not null then
    perform app.integration_tools_write(p_organization_id, i.id, p_tools);
  end if;
  update app.integrations
    set discovery_at = clock_timestamp(), discovery_status = p_discovery ->> 'status',
      discovery_error = nullif(p_discovery -> 'error', 'null')
    where organization_id = p_organization_id and id = i.id
    returning * into i;
  return jsonb_build_object('integration', app.integration_record(i));
end
$$;
