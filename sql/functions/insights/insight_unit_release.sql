-- Unit leased → released: its process stops, and has kept nothing of it. It is due at once. A repeat changes nothing. Returns {released}.
-- Locks: as insight_unit_lock. Codes: 409 state_conflict (lease_taken).
create or replace function app.insight_unit_release(p_organization_id uuid, p_unit_id uuid, p_fence bigint)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  u app.insight_units := app.insight_unit_lock(p_organization_id, p_unit_id, p_fence);
begin
  if u.state = 'leased' then
    perform app.insight_unit_end(u, 'released');
    perform app.insight_connector_settle(p_organization_id, u.integration_id);
  end if;
  return jsonb_build_object('released', u.state in ('leased', 'released'));
end
$$;
