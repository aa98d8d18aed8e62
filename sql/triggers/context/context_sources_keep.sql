-- Evidence stays what it was: only the status and its error change.
create or replace function app.context_sources_keep()
  returns trigger
  language plpgsql
as $$
begin
  if to_jsonb(new) - 'status' - 'error' <> to_jsonb(old) - 'status' - 'error' then
    raise exception 'source % is immutable', old.id;
  end if;
  return new;
end
$$;
