-- Chats whose removal is due (30 days after they were archived) or was begun and cut off, over all organizations, at most
-- p_limit after p_skip: those that the caller could not remove. Reads only; chat_purge judges anew.
create or replace function app.chats_expired(p_skip integer, p_limit integer)
  returns table (organization_id uuid, chat_id uuid)
  language sql stable security definer
as $$
  select c.organization_id, c.id
    from app.chats c
    -- What a deleted organization had goes with it.
    join app.organizations o on o.id = c.organization_id and o.deleted_at is null
    where c.status = 'archived' and c.archived_at <= clock_timestamp() - interval '30 days'
    order by c.archived_at, c.id
    offset p_skip limit p_limit
$$;
