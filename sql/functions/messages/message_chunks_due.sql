-- Long messages that wait to be indexed: of each organization the oldest p_rows, of at most p_organizations that follow p_after
-- (see due_in_turns). The oldest of each come first, then the next. Reads only.
create or replace function app.message_chunks_due(p_organizations integer, p_rows integer, p_after uuid default null)
  returns table (organization_id uuid, message_id uuid)
  language sql stable security definer
as $$
  select d.organization_id, d.id
    from app.due_in_turns('message_chunks', 'due_at', 'r.search_text is null', clock_timestamp(), p_after, p_organizations,
      p_rows, 'message_id') d
    order by row_number() over (partition by d.organization_id order by d.due_at, d.id), d.due_at, d.id
$$;
