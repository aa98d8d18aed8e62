-- Whether the token holds the lease of the run, for reads by its holder. Locks nothing. Codes: 409 run_lease_expired with
-- lease_lost.
create or replace function app.run_lease_check(p_organization_id uuid, p_run_id uuid, p_lease_token text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  r app.run_requests;
begin
  select q.* into r from app.run_requests q
    where q.organization_id = p_organization_id
      and q.id = (select u.run_request_id from app.runs u where u.organization_id = p_organization_id and u.id = p_run_id);
  if r.run_id is distinct from p_run_id or r.state <> 'started' or not app.lease_is_current(r, p_lease_token) then
    perform app.lease_refuse('lease_lost');
  end if;
  return '{"held": true}';
end
$$;
