-- The rate between two currencies: of the newest day, up to p_day and at most 7 days before it, on which both have one. p_base is the
-- euro unless it is given. Returns {day, rate, baseRate}, where one euro is worth so much of each, as text: an amount of the base
-- currency times rate through baseRate is one of the other. Null is a gap.
create or replace function app.currency_rate_read(p_currency text, p_day date, p_base text default 'EUR')
  returns jsonb
  language sql stable security definer
as $$
  select jsonb_build_object('day', c.day, 'rate', c.rate::text, 'baseRate', b.rate::text)
    from app.currency_rates c
    join app.currency_rates b on b.currency = p_base and b.day = c.day
    where c.currency = p_currency and c.day between p_day - 7 and p_day
    order by c.day desc
    limit 1
$$;
