-- Closes the question that a prerequisite will not complete (prerequisite_notify) for those of the given tasks that no longer
-- have such a prerequisite.
create or replace function app.prerequisite_close(p_organization_id uuid, p_task_ids uuid[])
  returns void
  language sql
as $$
  update app.human_inbox_items i set status = 'cancelled', updated_at = clock_timestamp()
    where i.organization_id = p_organization_id and i.task_id = any (p_task_ids)
      and i.status = 'open' and i.purpose = 'prerequisite'
      and not exists (
        select 1 from app.task_dependencies o
          join app.tasks p on p.organization_id = o.organization_id and p.id = o.depends_on_task_id
          where o.organization_id = i.organization_id and o.task_id = i.task_id and o.required
            and p.status in ('failed', 'cancelled'))
$$;
