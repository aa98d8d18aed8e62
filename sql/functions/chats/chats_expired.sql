-- Chats that are due for removal (archived 30 days ago), or whose removal was interrupted: of each organization the oldest
-- p_rows, of at most p_organizations that follow p_after (see due_in_turns). The oldest of each come first, then the next.
-- Reads only; chat_purge checks again. The chats of a deleted organization are purged with it.
create or replace function app.chats_expired(p_organizations integer, p_rows integer, p_after uuid default null)
  returns table (organization_id uuid, chat_id uuid)
  language sql stable security definer
as $$
  select d.organization_id, d.id
    from app.due_in_turns('chats', 'archived_at', $c$r.status = 'archived'$c$, clock_timestamp() - interval '30 days',
      p_after, p_organizations, p_rows) d
    order by row_number() over (partition by d.organization_id order by d.due_at, d.id), d.due_at, d.id
$$;
