-- Locks what a unit changes, and judges its lease: a fence that is not the connector's newest, or a lease that has ended, is late.
-- Locks: organization, integration (shared) → connector → source. Codes: 409 state_conflict (lease_taken).
create or replace function app.insight_unit_lock(p_organization_id uuid, p_unit_id uuid, p_fence bigint)
  returns app.insight_units
  language plpgsql
as $$
declare
  u app.insight_units;
  k app.insight_connectors;
begin
  perform 1 from app.organizations where id = p_organization_id for share;
  -- What a unit is of never changes.
  select * into u from app.insight_units where organization_id = p_organization_id and id = p_unit_id;
  perform 1 from app.integrations where organization_id = p_organization_id and id = u.integration_id for share;
  select * into k from app.insight_connectors
    where organization_id = p_organization_id and integration_id = u.integration_id for no key update;
  perform 1 from app.insight_sources where organization_id = p_organization_id and id = u.source_id for no key update;
  select * into u from app.insight_units where organization_id = p_organization_id and id = p_unit_id;
  if u.id is null or u.fence is distinct from p_fence
     or u.state = 'leased' and (k.unit_id is distinct from u.id or k.fence <> p_fence or k.lease_expires_at <= clock_timestamp()) then
    perform app.fail(409, 'state_conflict', 'The lease of the unit has ended',
      app.issue('unitId', 'lease_taken', 'claim another unit'));
  end if;
  return u;
end
$$;
