-- ready ↔ degraded, as the provider was just found. p_health: {code, leaseId?} of one that fails or limits us, {leaseId?}
-- of one that works, {postponed: true, leaseId?} of one that could not be asked, which stays what it was. p_check_seconds: until it
-- is looked at next, and until a refresh that is due and failed is tried again. leaseId: gives the refresh lease back. Another
-- connection than the one that was tried, or one that needs reauthorization, is left as it is. Returns {marked}.
-- Raises no epoch: agents see degraded as ready. Locks: integration → connection. Codes: 404 organization_not_found |
-- integration_not_found.
create or replace function app.integration_health_mark(
  p_organization_id uuid, p_integration_id uuid, p_connection_revision integer, p_health jsonb, p_check_seconds integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_postponed constant boolean := p_health ? 'postponed';
  v_lease_id constant uuid := (p_health ->> 'leaseId')::uuid;
  v_next timestamptz;
  i app.integrations := app.integration_lock(p_organization_id, p_integration_id::text, false);
begin
  v_next := clock_timestamp() + make_interval(secs => p_check_seconds);
  update app.integration_connections
    set degraded_at = case when v_postponed then degraded_at
        when p_health ? 'code' then coalesce(degraded_at, clock_timestamp()) end,
      degraded_code = case when v_postponed then degraded_code else p_health ->> 'code' end,
      checked_at = case when v_postponed then checked_at else clock_timestamp() end, check_due_at = v_next,
      refresh_due_at = case when (v_postponed or p_health ? 'code') and refresh_due_at < v_next then v_next
        else refresh_due_at end,
      refresh_lease_id = case when refresh_lease_id = v_lease_id then null else refresh_lease_id end,
      refresh_lease_expires_at = case when refresh_lease_id = v_lease_id then null else refresh_lease_expires_at end
    where organization_id = p_organization_id and integration_id = i.id and reauthorization_reason is null
      and i.connection_revision = p_connection_revision;
  return jsonb_build_object('marked', found);
end
$$;
