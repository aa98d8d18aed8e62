-- Removes the rows of files that are removed themselves: of those alone that are not read any more since p_hours, at least a day. A repeat
-- changes nothing. Returns {removed}. Locks: segments. Codes: none.
create or replace function app.insight_segments_remove(p_organization_id uuid, p_hours integer, p_keys text[])
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_removed integer;
begin
  delete from app.insight_segments
    where organization_id = p_organization_id and object_key = any (p_keys)
      and retired_at <= clock_timestamp() - make_interval(hours => greatest(p_hours, 24));
  get diagnostics v_removed = row_count;
  return jsonb_build_object('removed', v_removed);
end
$$;
