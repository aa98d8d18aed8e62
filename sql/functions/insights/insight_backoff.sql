-- How long something waits that has failed so many times in a row: two are soon tried again, from the third on it takes twice as long each
-- time, at most six hours.
create or replace function app.insight_backoff(p_failures integer)
  returns interval
  language sql immutable
as $$
  select case when p_failures <= 2 then interval '1 minute'
    else least(interval '5 minutes' * power(2, least(p_failures - 3, 10)), interval '6 hours') end
$$;
