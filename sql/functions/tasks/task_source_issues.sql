-- Issues with the source of a task ({sourceChatId, sourceMessageId} of p_task). An empty array: both belong to this
-- organization, and the message to the chat. A removed chat is an issue.
create or replace function app.task_source_issues(p_organization_id uuid, p_task jsonb)
  returns jsonb
  language sql stable
as $$
  select case
    when p_task ->> 'sourceChatId' is not null and not exists (
        select 1 from app.chats c
          where c.organization_id = p_organization_id and c.id = (p_task ->> 'sourceChatId')::uuid and c.removed_at is null)
      then app.issue('sourceChatId', 'unknown_chat', 'names no chat of this organization')
    when p_task ->> 'sourceMessageId' is not null and not exists (
        select 1 from app.messages m
          join app.chats c on c.organization_id = m.organization_id and c.id = m.chat_id and c.removed_at is null
          where m.organization_id = p_organization_id and m.id = (p_task ->> 'sourceMessageId')::uuid
            and m.chat_id = coalesce((p_task ->> 'sourceChatId')::uuid, m.chat_id))
      then app.issue('sourceMessageId', 'unknown_message', 'names no message of this organization, or of this chat')
    else '[]' end
$$;
