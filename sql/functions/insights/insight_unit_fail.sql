-- Unit leased → failed: its provider refused, limited or failed us, before anything was collected. p_error: {code, message, isOurs?}.
-- p_restart: {cursor}: its round begins anew there, and what it had staged is dropped. Where another connection collects the source by
-- now: → discarded. A repeat changes nothing. Returns {failed}.
-- Locks: as insight_unit_lock. Codes: 409 state_conflict (lease_taken).
create or replace function app.insight_unit_fail(
  p_organization_id uuid, p_unit_id uuid, p_fence bigint, p_error jsonb, p_retry_not_before timestamptz, p_restart jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_integration_id uuid;
  u app.insight_units := app.insight_unit_lock(p_organization_id, p_unit_id, p_fence);
begin
  if u.state <> 'leased' then
    return jsonb_build_object('failed', u.state = 'failed');
  end if;
  select integration_id into v_integration_id from app.insight_sources
    where organization_id = p_organization_id and id = u.source_id;
  if u.source_id is not null and v_integration_id is distinct from u.integration_id then
    perform app.insight_unit_end(u, 'discarded');
    perform app.insight_connector_settle(p_organization_id, u.integration_id);
    return '{"failed": false}';
  end if;
  if p_restart <> 'null' and u.source_id is not null then
    update app.insight_cursors set cursor = nullif(p_restart -> 'cursor', 'null'), round = null
      where organization_id = p_organization_id and source_id = u.source_id and mode = u.mode::text;
    perform app.insight_staged_drop(p_organization_id, u.source_id, u.mode);
  end if;
  perform app.insight_unit_failed(u, 'failed', p_error, p_retry_not_before);
  return '{"failed": true}';
end
$$;
