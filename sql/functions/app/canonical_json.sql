-- The canonical text (RFC 8785) of a JSON value with ASCII keys and integer numbers, so that its digest is the same in every
-- language.
create or replace function app.canonical_json(p_value jsonb)
  returns text
  language plpgsql immutable
as $$
begin
  if jsonb_typeof(p_value) = 'object' then
    return (select '{' || coalesce(string_agg(to_jsonb(e.key)::text || ':' || app.canonical_json(e.value), ','
        order by e.key collate "C"), '') || '}' from jsonb_each(p_value) e);
  elsif jsonb_typeof(p_value) = 'array' then
    return (select '[' || coalesce(string_agg(app.canonical_json(e.value), ',' order by e.place), '') || ']'
      from jsonb_array_elements(p_value) with ordinality e(value, place));
  end if;
  return p_value::text;
end
$$;
