-- The same set by a third of the work: equal by bytes either way, but compared by bytes and not by the rules of a language.
-- A message is indexed while its chat is locked.
create or replace function app.search_grams(p_text text) returns text[]
  language plpgsql immutable parallel safe cost 10000 set search_path = pg_catalog, pg_temp
  as $$
declare
  v_characters constant text[] := string_to_array(p_text, null);
begin
  return array(
    select distinct g.gram collate "C"
    from (
      select unnest(v_characters) as gram
      union all
      select p.one || p.next from unnest(v_characters, v_characters[2:]) p(one, next) where p.next is not null
    ) g);
end
$$;
