-- Asks a person, once per task, what to do about it that an open task waits for one that will not complete. Covers everything
-- that depends on the given tasks or, with p_task_id, that task alone (a new edge). Given tasks that may still complete are
-- ignored.
create or replace function app.prerequisite_notify(
  p_organization_id uuid, p_prerequisite_ids uuid[], p_task_id uuid default null)
  returns void
  language sql
as $$
  insert into app.human_inbox_items (organization_id, kind, purpose, title, body, options, allow_free_text, task_id)
    select distinct on (d.task_id) p_organization_id, 'question', 'prerequisite',
        left('Waits for a task that will not complete: ' || w.title, 500),
        format('%s needs %s, which is %s. Retry that task, remove the dependency, let it wait, or cancel it.',
          w.identifier_scope || '-' || w.identifier_number, t.identifier_scope || '-' || t.identifier_number, t.status),
        '["retry", "remove", "wait", "cancel"]', false, d.task_id
      from app.task_dependencies d
      join app.tasks t on t.organization_id = d.organization_id and t.id = d.depends_on_task_id
      join app.tasks w on w.organization_id = d.organization_id and w.id = d.task_id
      where d.organization_id = p_organization_id and d.depends_on_task_id = any (p_prerequisite_ids) and d.required
        and (p_task_id is null or d.task_id = p_task_id)
        and t.status in ('failed', 'cancelled') and w.status in ('pending', 'blocked', 'running', 'waiting')
    on conflict (organization_id, task_id, purpose)
      where status = 'open' and purpose in ('repair', 'budget', 'prerequisite', 'failure') do nothing
$$;
