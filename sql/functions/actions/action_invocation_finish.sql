-- Invocation of a read begun → responded | failed | none. p_outcome: {response} as JSON text | {responseKey}, where it lies in the object
-- storage | {failure: {status, code, message, issues}}, for those who wait: another call begins it anew | {}: its arguments were
-- refused, and nothing is bound.
-- Whoever has lost the lease changes nothing. Returns {finished}. Locks: invocation. Codes: none.
create or replace function app.action_invocation_finish(
  p_organization_id uuid, p_run_id uuid, p_integration_id uuid, p_invocation_id text, p_lease_id uuid, p_outcome jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
begin
  if p_outcome = '{}' then
    delete from app.action_invocations
      where organization_id = p_organization_id and run_id = p_run_id and integration_id = p_integration_id
        and invocation_id = p_invocation_id and lease_id = p_lease_id and lease_expires_at is not null;
  else
    update app.action_invocations
      set lease_expires_at = null, response = p_outcome ->> 'response', response_key = p_outcome ->> 'responseKey',
        failure = p_outcome -> 'failure'
      where organization_id = p_organization_id and run_id = p_run_id and integration_id = p_integration_id
        and invocation_id = p_invocation_id and lease_id = p_lease_id and lease_expires_at is not null;
  end if;
  return jsonb_build_object('finished', found);
end
$$;
