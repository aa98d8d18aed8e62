-- Search for one or two characters, for signs, and in other scripts: trigrams are made of letters and digits, three in a
-- row, and with some locales of Latin ones alone.
-- Characters and pairs of neighbours of a text, each once. Immutable, as an index expression has to be: kept here, beside it.
create function app.search_grams(p_text text) returns text[]
  language sql immutable parallel safe cost 10000 set search_path = pg_catalog, pg_temp
  as $$
    select coalesce(array_agg(distinct g.gram), '{}')
    from (
      select c.character, c.character || lead(c.character) over (order by c.place) as pair
        from string_to_table(p_text, null) with ordinality c(character, place)
    ) p
    cross join lateral (values (p.character), (p.pair)) g(gram)
    where g.gram is not null
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
