-- The first spend limit in a hierarchy: from now on what its runs cost is counted.
create or replace function app.tasks_track_spend()
  returns trigger
  language plpgsql
as $$
begin
  perform app.task_spend_track(new.organization_id, new.root_task_id);
  return null;
end
$$;
