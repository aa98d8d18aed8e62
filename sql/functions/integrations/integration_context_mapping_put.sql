-- Says what an integration means to the organization, and queues the repair that writes it into the next health report
-- (docs/interface.md 4.10). What waits for the same integration is replaced: the last word counts. Neither the connection nor what
-- agents may do changes. Returns {repairId, status}.
-- Locks: integration. Codes: 404 organization_not_found | integration_not_found.
create or replace function app.integration_context_mapping_put(
  p_organization_id uuid, p_integration_ref text, p_mapping jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_id uuid;
  i app.integrations := app.integration_lock(p_organization_id, p_integration_ref, false);
begin
  select id into v_id from app.integration_context_repairs
    where organization_id = p_organization_id and integration_id = i.id and status = 'queued' for no key update;
  if found then
    update app.integration_context_repairs set mapping = p_mapping where organization_id = p_organization_id and id = v_id;
  else
    insert into app.integration_context_repairs (organization_id, integration_id, mapping)
      values (p_organization_id, i.id, p_mapping)
      returning id into v_id;
  end if;
  update app.integrations set context_mapping = p_mapping, updated_at = clock_timestamp()
    where organization_id = p_organization_id and id = i.id;
  -- A key of its own: it takes no full audit's place.
  perform app.enqueue('context__assess_health',
    jsonb_build_object('organizationId', p_organization_id, 'assessment', 'integration_reconciliation'),
    format('context__assess_health:%s:integrations', p_organization_id));
  return jsonb_build_object('repairId', v_id, 'status', 'queued');
end
$$;
