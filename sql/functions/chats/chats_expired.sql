-- Chats of all organizations that are due for removal (archived 30 days ago), or whose removal was interrupted: at most
-- p_limit, after skipping p_skip that the caller could not remove. Reads only; chat_purge checks again.
create or replace function app.chats_expired(p_skip integer, p_limit integer)
  returns table (organization_id uuid, chat_id uuid)
  language sql stable security definer
as $$
  select c.organization_id, c.id
    from app.chats c
    -- The chats of a deleted organization are purged with it.
    join app.organizations o on o.id = c.organization_id and o.deleted_at is null
    where c.status = 'archived' and c.archived_at <= clock_timestamp() - interval '30 days'
    order by c.archived_at, c.id
    offset p_skip limit p_limit
$$;
