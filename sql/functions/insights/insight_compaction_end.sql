-- Ends a compaction that publishes nothing: it has failed (p_error: {code, message}), and the month waits; or its process stops (null), and
-- another one may go on at once. A repeat changes nothing. Returns {ended}.
-- Locks: as insight_compaction_lock. Codes: 409 state_conflict (lease_taken).
create or replace function app.insight_compaction_end(
  p_organization_id uuid, p_source_id uuid, p_month text, p_compaction_id uuid, p_fence bigint, p_error jsonb default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  k app.insight_compactions :=
    app.insight_compaction_lock(p_organization_id, p_source_id, p_month, p_compaction_id, p_fence);
begin
  if k.lease_expires_at is not null and p_error is not null then
    perform app.insight_compaction_failed(k, p_error, clock_timestamp());
  elsif k.lease_expires_at is not null then
    update app.insight_compactions set lease_expires_at = null, segments = '[]'
      where organization_id = p_organization_id and source_id = p_source_id and month = p_month;
  end if;
  return jsonb_build_object('ended', k.revision is null);
end
$$;
