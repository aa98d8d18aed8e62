-- Finds a schedule by UUID or key, and locks it. Returns a row without id if there is none.
create or replace function app.schedule_find(p_organization_id uuid, p_schedule_ref text)
  returns app.schedules
  language sql
as $$
  -- A key never has the form of a UUID.
  select s.* from app.schedules s
    where s.organization_id = p_organization_id
      and case
        when p_schedule_ref ~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'
          then s.id = p_schedule_ref::uuid
        else s.key = p_schedule_ref end
    for no key update of s
$$;
