-- What follows from the answer to a prerequisite question, for the prerequisites of the task that will not complete as things
-- are: remove drops the edges to them, and retry reopens them as a person does (task_retry); wait changes nothing.
-- The caller has locked the roots. Codes: 409 state_conflict, those of task_retry.
create or replace function app.human_inbox_prerequisite(i app.human_inbox_items)
  returns void
  language plpgsql
as $$
declare
  v_ids uuid[];
  v_id uuid;
begin
  select coalesce(array_agg(d.depends_on_task_id order by d.created_at, d.id), '{}') into v_ids
    from app.task_dependencies d
    join app.tasks p on p.organization_id = d.organization_id and p.id = d.depends_on_task_id
    where d.organization_id = i.organization_id and d.task_id = i.task_id and d.required
      and p.status in ('failed', 'cancelled');
  if i.response = 'remove' then
    perform app.task_dependencies_drop(i.organization_id, i.task_id, v_ids);
  elsif i.response = 'retry' then
    foreach v_id in array v_ids loop
      -- One may have come back with another.
      if exists (select 1 from app.tasks where organization_id = i.organization_id and id = v_id
          and status in ('failed', 'cancelled')) then
        perform app.task_retry(i.organization_id, v_id::text, '{"kind": "owner"}');
      end if;
    end loop;
  end if;
end
$$;
