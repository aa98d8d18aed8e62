-- The request of a run, locked: where every call of a holder begins. Which request it is never changes, so it is found
-- without a lock; everything else is judged after it. An all-null row: no such run.
create or replace function app.run_request_of(p_organization_id uuid, p_run_id uuid)
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
