-- The given time zone, or UTC if the API would not accept it (abbreviations, POSIX rules) or this Postgres does not know it:
-- one such organization must not break a view for all. Reads nothing. Not parallel safe, because before Postgres 17 parallel
-- workers cannot enter an exception block.
create or replace function app.timezone_or_utc(p_timezone text)
  returns text
  language plpgsql stable
as $$
begin
  -- The same as in engine/schedules/zone_name.ts.
  if p_timezone !~* '^(?:UTC|Etc/GMT(?:[+-]?1?\d)?|(?!(?:posix|right|SystemV)/)[A-Z_]+(?:/[A-Z_-]+)+)$' then
    return 'UTC';
  end if;
  perform timestamptz 'epoch' at time zone p_timezone;
  return coalesce(p_timezone, 'UTC');
exception when invalid_parameter_value then
  return 'UTC';
end
$$;
