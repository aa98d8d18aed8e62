-- A relative path as the path of a URI, each segment encoded as by encodeURIComponent, so that SQL and TypeScript agree.
create or replace function app.uri_path(p_path text)
  returns text
  language sql immutable
as $$
  select string_agg(
    case when c.c ~ '^[A-Za-z0-9_.!~*''()/-]$' then c.c
         else upper(regexp_replace(encode(convert_to(c.c, 'UTF8'), 'hex'), '(..)', '%\1', 'g')) end, '' order by c.place)
  from string_to_table(p_path, null) with ordinality c(c, place)
$$;
