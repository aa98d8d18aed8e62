-- ANALYZE, which autovacuum runs for every tenth of a table that has changed, sampled what no plan is made by: the pairs of letters
-- of 30,000 messages (7 s for texts of 350 characters, minutes for long ones), and JSON and hashes, of which it kept
-- tenants' values besides. No index is of JSON; how common pairs of letters are the search asks of the index itself.
set local role runner_owner;
alter index app.messages_search_grams_idx alter column 2 set statistics 0;
do $$
declare
  v_column record;
begin
  for v_column in
    select c.relname as "table", a.attname as "column" from pg_attribute a join pg_class c on c.oid = a.attrelid
      where c.relnamespace = 'app'::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped
        and a.atttypid in ('jsonb'::regtype, 'bytea'::regtype) and c.relowner = 'runner_owner'::regrole
  loop
    execute format('alter table app.%I alter column %I set statistics 0', v_column."table", v_column."column");
  end loop;
end
$$;
reset role;

-- As in 000111: what was sampled before goes, where the migrating login may take it away.
do $$
begin
  if (select rolsuper from pg_roles where rolname = current_user) then
    delete from pg_statistic s using pg_attribute a, pg_class c
      where a.attrelid = s.starelid and a.attnum = s.staattnum and a.attstattarget = 0
        and c.oid = a.attrelid and c.relnamespace = 'app'::regnamespace;
  end if;
end
$$;
