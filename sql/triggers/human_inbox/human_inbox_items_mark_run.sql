-- A blocking question about a running task: the end of the run reads it.
create or replace function app.human_inbox_items_mark_run()
  returns trigger
  language plpgsql
as $$
begin
  update app.run_requests set staged_run_id = run_id
    where organization_id = new.organization_id and task_id = new.task_id and state = 'started'
      and cancel_requested_at is null;
  return null;
end
$$;
