-- The searchable text of parts: the first 30,000 characters of the text parts, folded. It is indexed while the chat is locked,
-- and the time grows with the number of different words (scripts/bench/README.md, Search).
create or replace function app.parts_text(p_parts jsonb)
  returns text
  language sql immutable
as $$
  select coalesce(left(app.search_fold(left(string_agg(i.part ->> 'text', E'\n' order by i.place), 30000)), 30000), '')
  from jsonb_array_elements(p_parts) with ordinality i(part, place)
  where i.part ->> 'kind' = 'text'
$$;
