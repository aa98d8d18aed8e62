-- Removes units that ended 30 days ago, at most p_rows, the oldest first. What they published stays. Reads and deletes of all tenants.
-- Returns {removed}.
create or replace function app.insight_units_clean(p_rows integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_removed integer;
begin
  delete from app.insight_units u
    using (select organization_id, id from app.insight_units
      where ended_at < clock_timestamp() - interval '30 days' order by ended_at limit p_rows) d
    where u.organization_id = d.organization_id and u.id = d.id;
  get diagnostics v_removed = row_count;
  return jsonb_build_object('removed', v_removed);
end
$$;
