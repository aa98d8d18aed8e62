-- The tasks whose roots are locked before an item is responded to: its own and, of a prerequisite question, those that its task
-- waits for, which may be retried. Read without a lock: an edge may be added before the roots are locked.
create or replace function app.human_inbox_item_tasks(p_organization_id uuid, p_inbox_item_id uuid)
  returns uuid[]
  language sql stable
as $$
  select coalesce(array_agg(n.id), '{}')
    from app.human_inbox_items q
    cross join lateral (
      select q.task_id as id
      union all
      select d.depends_on_task_id from app.task_dependencies d
        where q.purpose = 'prerequisite' and d.organization_id = q.organization_id and d.task_id = q.task_id and d.required
    ) n
    where q.organization_id = p_organization_id and q.id = p_inbox_item_id and n.id is not null
$$;
