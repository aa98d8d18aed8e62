-- The name of a time zone as it is, or UTC for what the API does not take (abbreviations, rules of POSIX) and where this
-- Postgres does not know it: one such organization must not make a view fail for all. Reads nothing. Not parallel safe: before
-- Postgres 17 an exception block cannot be entered there.
create or replace function app.timezone_or_utc(p_timezone text)
  returns text
  language plpgsql stable
as $$
begin
  -- As in engine/schedules/zone_name.ts.
  if p_timezone !~* '^(?:UTC|Etc/GMT(?:[+-]?1?\d)?|(?!(?:posix|right|SystemV)/)[A-Z_]+(?:/[A-Z_-]+)+)$' then
    return 'UTC';
  end if;
  perform timestamptz 'epoch' at time zone p_timezone;
  return coalesce(p_timezone, 'UTC');
exception when invalid_parameter_value then
  return 'UTC';
end
$$;
