-- Files of an organization that are not read any more since p_hours, at least a day: the p_rows oldest that follow p_after. The caller
-- removes them, then their rows (insight_segments_remove). Reads only. Returns {keys, after}: after null at the end.
create or replace function app.insight_segments_expired(
  p_organization_id uuid, p_hours integer, p_rows integer, p_after jsonb default null)
  returns jsonb
  language plpgsql stable security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
begin
  return (
    with page as (
      select g.object_key, g.retired_at, g.id from app.insight_segments g
        where g.organization_id = p_organization_id
          and g.retired_at <= clock_timestamp() - make_interval(hours => greatest(p_hours, 24))
          and (p_after is null
            or (g.retired_at, g.id) > ((p_after ->> 'retiredAt')::timestamptz, (p_after ->> 'id')::uuid))
          and exists (select from app.organizations o where o.id = p_organization_id and o.deleted_at is null)
        order by g.retired_at, g.id limit p_rows)
    select jsonb_build_object('keys', coalesce((select jsonb_agg(p.object_key order by p.retired_at, p.id) from page p), '[]'),
      'after', (
        select jsonb_build_object('retiredAt', p.retired_at, 'id', p.id) from page p
          where (select count(*) from page) = p_rows
          order by p.retired_at desc, p.id desc limit 1)));
end
$$;
