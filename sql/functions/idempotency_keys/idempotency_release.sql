-- Gives back a claimed key whose work failed, so that it can be used again. One that was finished or taken over stays.
-- Returns {released}.
create or replace function app.idempotency_release(
  p_organization_id uuid, p_caller text, p_method text, p_path text, p_key text, p_claim_id uuid)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
begin
  delete from app.idempotency_keys
    where organization_id = p_organization_id and caller = p_caller and method = p_method and path = p_path and key = p_key
      and claim_id = p_claim_id;
  return jsonb_build_object('released', found);
end
$$;
