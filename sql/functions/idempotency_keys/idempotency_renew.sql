-- Keeps a claimed key for the work that goes on under it, until p_claim_seconds from now. One that another call took over, that was
-- finished or given back stays as it is. Returns {renewed}.
create or replace function app.idempotency_renew(
  p_organization_id uuid, p_caller text, p_method text, p_path text, p_key text, p_claim_id uuid, p_claim_seconds integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
begin
  update app.idempotency_keys set claimed_until = clock_timestamp() + make_interval(secs => p_claim_seconds)
    where organization_id = p_organization_id and caller = p_caller and method = p_method and path = p_path and key = p_key
      and claim_id = p_claim_id;
  return jsonb_build_object('renewed', found);
end
$$;
