-- Whether the clocks of a time zone are p_seconds ahead of UTC at p_instants, one by one. False if this Postgres does not know
-- the zone. Reads nothing.
create or replace function app.timezone_matches(p_timezone text, p_instants timestamptz[], p_seconds integer[])
  returns boolean
  language plpgsql stable
as $$
begin
  return not exists (
    select
    from unnest(p_instants, p_seconds) p(instant, seconds)
    where extract(epoch from (p.instant at time zone p_timezone) - (p.instant at time zone 'UTC')) is distinct from p.seconds);
exception when invalid_parameter_value then
  return false;
end
$$;
