-- What search looks through: the text parts, folded, and of them the first 30,000 characters. They are indexed while the chat
-- is locked, and the work grows with what differs in them (scripts/bench/README.md, Search).
create or replace function app.parts_text(p_parts jsonb)
  returns text
  language sql immutable
as $$
  select coalesce(left(app.search_fold(left(string_agg(i.part ->> 'text', E'\n' order by i.place), 30000)), 30000), '')
  from jsonb_array_elements(p_parts) with ordinality i(part, place)
  where i.part ->> 'kind' = 'text'
$$;
