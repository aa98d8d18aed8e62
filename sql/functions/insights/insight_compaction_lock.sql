-- Locks what a compaction changes, and judges its lease: another claim than the newest, or a lease that has ended, is late. One that has
-- ended by itself has no lease.
-- Locks: organization, source (shared) → compaction. Codes: 409 state_conflict (lease_taken).
create or replace function app.insight_compaction_lock(
  p_organization_id uuid, p_source_id uuid, p_month text, p_compaction_id uuid, p_fence bigint)
  returns app.insight_compactions
  language plpgsql
as $$
declare
  k app.insight_compactions;
begin
  perform 1 from app.organizations where id = p_organization_id for share;
  -- Units of the source commit before or after, and stage nothing meanwhile.
  perform 1 from app.insight_sources where organization_id = p_organization_id and id = p_source_id for share;
  select * into k from app.insight_compactions
    where organization_id = p_organization_id and source_id = p_source_id and month = p_month
    for no key update;
  if k.compaction_id is distinct from p_compaction_id or k.fence is distinct from p_fence
     or k.lease_expires_at <= clock_timestamp() then
    perform app.fail(409, 'state_conflict', 'The lease of the compaction has ended',
      app.issue('compactionId', 'lease_taken', 'claim another compaction'));
  end if;
  return k;
end
$$;
