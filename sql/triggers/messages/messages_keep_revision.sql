-- Streams show revisions by their number: each change has a higher one, and what is final stays as it is.
create or replace function app.messages_keep_revision()
  returns trigger
  language plpgsql
as $$
begin
  if new is distinct from old and (new.revision <= old.revision or old.completed_at is not null) then
    raise exception 'message % is final, or its revision does not rise', old.id;
  end if;
  return new;
end
$$;
