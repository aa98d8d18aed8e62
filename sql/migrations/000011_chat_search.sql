-- Search for one or two characters, for signs, and in other scripts: trigrams are made of letters and digits, three in a
-- row, and with some locales of Latin ones alone.
-- Characters and pairs of neighbours of a text, each once. Immutable, as an index expression has to be: kept here, beside it.
-- Its cost keeps the planner from calling it for every row.
create function app.search_grams(p_text text) returns text[]
  language plpgsql immutable parallel safe cost 10000 set search_path = pg_catalog, pg_temp
  as $$
declare
  v_characters constant text[] := string_to_array(p_text, null);
begin
  return array(
    select distinct g.gram
    from (
      select unnest(v_characters) as gram
      union all
      select p.one || p.next from unnest(v_characters, v_characters[2:]) p(one, next) where p.next is not null
    ) g);
end
$$;
alter function app.search_grams(text) owner to runner_owner;
revoke all on function app.search_grams(text) from public;
grant execute on function app.search_grams(text) to runner_scoped, runner_global;

do $$
begin
  execute format('create index messages_search_grams_idx on app.messages
    using gin (organization_id %I.uuid_ops, app.search_grams(search_text)) where search_text is not null',
    (select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'btree_gin'));
end
$$;
