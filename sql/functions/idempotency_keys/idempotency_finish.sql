-- Stores the response of the work, in the transaction of its change. p_claim_id: the claim that the work was done under.
-- Returns {stored}. Codes: 409 idempotency_key_in_use (the claim ran out, and another call took it over: the change of this
-- transaction must not commit).
create or replace function app.idempotency_finish(
  p_organization_id uuid, p_caller text, p_method text, p_path text, p_key text, p_status integer, p_body jsonb,
  p_claim_id uuid default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
begin
  update app.idempotency_keys set status_code = p_status, response = p_body, claim_id = null, claimed_until = null
    where organization_id = p_organization_id and caller = p_caller and method = p_method and path = p_path and key = p_key
      and claim_id is not distinct from p_claim_id and status_code is null;
  if not found then
    perform app.fail(409, 'idempotency_key_in_use', 'Another call with this Idempotency-Key has taken over',
      app.issue('Idempotency-Key', 'idempotency_key_in_use', 'is of another call now'));
  end if;
  return '{"stored": true}';
end
$$;
