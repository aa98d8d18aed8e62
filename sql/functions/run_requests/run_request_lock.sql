-- The request of a run, locked: the first lock of every call of a lease holder, after the roots. Which request a run belongs to
-- never changes, so it is looked up without a lock; whatever else is decided, is decided after it. No such run: a null row.
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
