-- Whether a refresh brings a cursor forward: the tail, and a rescan whose last one, or the discovery of its source, is an hour old.
-- One without a date is done, or waits for another mode.
create or replace function app.insight_cursor_refreshes(u app.insight_cursors, p_now timestamptz)
  returns boolean
  language sql stable
as $$
  select case u.mode
    when 'tail' then true
    when 'rescan' then coalesce(u.completed_at, (select s.created_at from app.insight_sources s
      where s.organization_id = u.organization_id and s.id = u.source_id)) <= p_now - interval '1 hour'
    else false end
$$;
