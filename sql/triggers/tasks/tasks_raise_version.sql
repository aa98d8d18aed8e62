-- The version rises with every change of the task, whoever makes it. What its own creation still does to it in the
-- same transaction (edges, blockers) is part of that first version.
create or replace function app.tasks_raise_version()
  returns trigger
  language plpgsql
as $$
begin
  -- A generated column is still null here, and would make every update a change; Postgres fills it in after this.
  new.due_order := old.due_order;
  if new is distinct from old and not (old.version = 1 and old.created_at = now()) then
    new.version := old.version + 1;
    new.updated_at := greatest(clock_timestamp(), old.updated_at);
  end if;
  return new;
end
$$;
