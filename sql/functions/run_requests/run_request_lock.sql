-- Locks and returns the request of a run: the first lock, after the roots, of every call by a lease holder. A run never changes
-- its request, so the request is looked up without a lock; check everything else after this. Returns a null row if there is no
-- such run.
create or replace function app.run_request_lock(p_organization_id uuid, p_run_id uuid)
  returns app.run_requests
  language plpgsql
as $$
declare
  r app.run_requests;
begin
  select q.* into r from app.run_requests q
    where q.organization_id = p_organization_id
      and q.id = (select u.run_request_id from app.runs u where u.organization_id = p_organization_id and u.id = p_run_id)
    for no key update;
  return r;
end
$$;
