-- Run request leased → published: returns a claim that reached no worker. A stale token changes nothing. Locks: run request.
-- Returns {released}.
create or replace function app.run_request_release(p_organization_id uuid, p_run_request_id uuid, p_lease_token text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_asynchronous constant text := set_config('synchronous_commit', 'off', true);
  r app.run_requests;
begin
  select * into r from app.run_requests
    where organization_id = p_organization_id and id = p_run_request_id for no key update;
  if not found or r.state <> 'leased' or not app.lease_is_current(r, p_lease_token) then
    return '{"released": false}';
  end if;
  update app.run_requests
    set state = 'published', lease_secret_hash = null, lease_expires_at = null
    where organization_id = p_organization_id and id = p_run_request_id;
  return '{"released": true}';
end
$$;
