-- A task as transitions return it: its row, with the columns that only its root holds.
create or replace function app.task_row(p_organization_id uuid, p_task_id uuid)
  returns jsonb
  language sql stable
as $$
  select to_jsonb(t) || jsonb_build_object('graph_revision', r.graph_revision, 'spend_limited', r.spend_limited)
  from app.tasks t
  join app.tasks r on r.organization_id = t.organization_id and r.id = t.root_task_id
  where t.organization_id = p_organization_id and t.id = p_task_id
$$;
