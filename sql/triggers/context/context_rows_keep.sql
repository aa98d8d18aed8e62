-- Revisions, their documents and health reports are written once.
create or replace function app.context_rows_keep()
  returns trigger
  language plpgsql
as $$
begin
  if new is distinct from old then
    raise exception 'rows of % are immutable', tg_table_name;
  end if;
  return new;
end
$$;
