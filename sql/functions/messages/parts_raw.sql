-- The visible text of parts as it was written, null where there is none.
create or replace function app.parts_raw(p_parts jsonb)
  returns text
  language sql immutable
as $$
  select string_agg(i.part ->> 'text', E'\n' order by i.place)
  from jsonb_array_elements(p_parts) with ordinality i(part, place)
  where i.part ->> 'kind' = 'text'
$$;
