-- Asks a person, once, what to do about a result that was refused twice: try again, accept it, or cancel the task. p_run_id:
-- the run of that result. p_body: what is wrong with it. The caller has locked the roots and settles the task.
create or replace function app.task_repair_ask(t app.tasks, p_run_id uuid, p_body text)
  returns void
  language plpgsql
as $$
begin
  insert into app.human_inbox_items (organization_id, kind, purpose, blocking, title, body, options, task_id, run_id)
    values (t.organization_id, 'question', 'repair', true, left('The result was refused twice: ' || t.title, 500), p_body,
      '["try_again", "accept", "cancel"]', t.id, p_run_id)
    on conflict (organization_id, task_id, purpose)
      where status = 'open' and purpose in ('repair', 'budget', 'prerequisite') do nothing;
end
$$;
