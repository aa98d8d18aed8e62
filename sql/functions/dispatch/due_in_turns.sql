-- Rows of a table that have become due: of each organization the oldest p_rows, of at most p_organizations that follow p_after
-- (null: from the first one). So an organization with any number of due rows gets its share of what is read, and no more. The
-- caller goes on after the last organization that it was given; where it was given fewer than it asked for, from the first one.
-- Rows of deleted organizations wait for their purge.
-- Usually little is due, and is found by the index over all organizations, (p_time). Where that would say more than
-- p_organizations rows, a walk finds the organizations: one step of the index (organization_id, p_time) each, over whatever
-- number of rows. p_table, p_id and p_time name a table and its columns, p_condition is the predicate of both indexes.
create or replace function app.due_in_turns(
  p_table text, p_time text, p_condition text, p_before timestamptz, p_after uuid, p_organizations integer, p_rows integer,
  p_id text default 'id')
  returns table (organization_id uuid, id uuid, due_at timestamptz)
  language plpgsql stable
as $$
declare
  v_due constant text := format('from app.%I r where %s and r.%I <= $1', p_table, p_condition, p_time);
  v_first constant text := format('from app.%I r where %s', p_table, p_condition);
  v_kept constant text := 'exists (select from app.organizations o where o.id = d.organization_id and o.deleted_at is null)';
  v_count integer;
  v_read text;
begin
  execute format('select count(*) from (select %s order by r.%I limit $2) d', v_due, p_time)
    into v_count using p_before, p_organizations;
  if v_count = 0 then
    return;
  elsif v_count < p_organizations then
    v_read := format('select d.* from (select r.organization_id, r.%I, r.%I %s) d where %s', p_id, p_time, v_due, v_kept);
  else
    v_read := format('with recursive d as (
        (select r.organization_id, r.%1$I as at %2$s and r.organization_id > $2 order by r.organization_id, r.%1$I limit 1)
        union all
        select n.* from d cross join lateral (
          select r.organization_id, r.%1$I %2$s and r.organization_id > d.organization_id
            order by r.organization_id, r.%1$I limit 1) n)
      select r.* from (select d.organization_id from d where d.at <= $1 and %3$s limit $3) t
        cross join lateral (select r.organization_id, r.%5$I, r.%1$I %4$s and r.organization_id = t.organization_id
          order by r.%1$I limit $4) r', p_time, v_first, v_kept, v_due, p_id);
  end if;
  for organization_id, id, due_at in execute v_read
    using p_before, coalesce(p_after, '00000000-0000-0000-0000-000000000000'), p_organizations, p_rows
  loop
    return next;
  end loop;
end
$$;
