-- Stores the response of the work, in its transaction. Returns {stored}.
create or replace function app.idempotency_finish(
  p_organization_id uuid, p_caller text, p_method text, p_path text, p_key text, p_status integer, p_body jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
begin
  update app.idempotency_keys set status_code = p_status, answer = p_body
    where organization_id = p_organization_id and caller = p_caller and method = p_method and path = p_path and key = p_key;
  return jsonb_build_object('stored', found);
end
$$;
