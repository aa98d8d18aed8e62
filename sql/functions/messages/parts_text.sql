-- The searchable text of parts: the first 30,000 characters of the text parts, folded. It is indexed while the chat is locked,
-- and the time grows with the number of different words (scripts/bench/README.md, Search). The rest: message_chunks_fill.
create or replace function app.parts_text(p_parts jsonb)
  returns text
  language sql immutable
as $$
  select coalesce(left(app.search_fold(left(app.parts_raw(p_parts), 30000)), 30000), '')
$$;
