-- What search looks through: the text parts, in lower case, and of them the first 200,000 characters. It is indexed while the
-- chat is locked, and the work grows with its length.
create or replace function app.parts_text(p_parts jsonb)
  returns text
  language sql immutable
  set search_path = pg_catalog, pg_temp
as $$
  select coalesce(lower(left(string_agg(i.part ->> 'text', E'\n' order by i.place), 200000)), '')
  from jsonb_array_elements(p_parts) with ordinality i(part, place)
  where i.part ->> 'kind' = 'text'
$$;

alter function app.parts_text owner to runner_scoped;
revoke all on function app.parts_text from public;
