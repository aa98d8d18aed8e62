-- How many actions count towards maxDailyActions on the day of a point in time: that which clocks of the zone show then. Going from a
-- point in time to a date is never ambiguous, which the way back is where midnight repeats. No day has more than 26 hours.
create or replace function app.actions_of_day(p_organization_id uuid, p_timezone text, p_at timestamptz)
  returns bigint
  language sql stable
as $$
  select count(*) from app.actions
    where organization_id = p_organization_id and status not in ('rejected', 'expired', 'cancelled')
      and created_at >= p_at - interval '26 hours'
      and (created_at at time zone p_timezone)::date = (p_at at time zone p_timezone)::date
$$;
