-- The id of a task, given its UUID or its identifier (T-12, I-3); null if there is none.
create or replace function app.task_find(p_organization_id uuid, p_task_ref text)
  returns uuid
  language plpgsql stable
as $$
declare
  v_id uuid;
begin
  if p_task_ref ~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' then
    select id into v_id from app.tasks where organization_id = p_organization_id and id = p_task_ref::uuid;
  elsif p_task_ref ~ '^[TI]-[1-9][0-9]{0,8}$' then
    select id into v_id from app.tasks
      where organization_id = p_organization_id and identifier_scope = left(p_task_ref, 1)
        and identifier_number = substring(p_task_ref from 3)::integer;
  end if;
  return v_id;
end
$$;
