-- A message as transitions return it: its row without what only search and repeats need.
create or replace function app.message_row(m app.messages)
  returns jsonb
  language sql stable
  set search_path = pg_catalog, pg_temp
as $$
  select to_jsonb(m) - 'search_text' - 'write_hash'
$$;

alter function app.message_row owner to runner_scoped;
revoke all on function app.message_row from public;
