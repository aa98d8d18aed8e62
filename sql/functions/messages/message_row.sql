-- A message as transitions return it: its row without the columns that only search and repeats need.
create or replace function app.message_row(m app.messages)
  returns jsonb
  language sql stable
as $$
  select to_jsonb(m) - 'search_text' - 'write_hash'
$$;
