-- Organizations with files that are not read any more since p_hours, in turns (see due_in_turns). Reads only.
create or replace function app.insight_expiries_due(p_hours integer, p_organizations integer, p_after uuid default null)
  returns table (organization_id uuid)
  language sql stable security definer
as $$
  select distinct d.organization_id
    from app.due_in_turns('insight_segments', 'retired_at', 'r.retired_at is not null',
      clock_timestamp() - make_interval(hours => p_hours), p_after, p_organizations, 1) d
    order by d.organization_id
$$;
