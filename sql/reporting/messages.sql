create view reporting.messages with (security_barrier) as
select
  m.organization_id,
  m.id as message_id,
  m.chat_id,
  m.reply_to_message_id,
  m.role::text as role,
  m.status::text as status,
  m.revision,
  m.error ->> 'code' as error_code,
  m.created_at,
  m.completed_at,
  m.updated_at,
  case when m.role = 'assistant' then extract(epoch from m.completed_at - m.created_at) end as reply_seconds
from app.messages m;

comment on view reporting.messages is 'Messages of people and the replies to them, without their texts.';
comment on column reporting.messages.organization_id is 'The organization.';
comment on column reporting.messages.message_id is 'The message.';
comment on column reporting.messages.chat_id is 'Its chat.';
comment on column reporting.messages.reply_to_message_id is 'The message that it replies to.';
comment on column reporting.messages.role is 'user or assistant.';
comment on column reporting.messages.status is 'pending, complete, cancelling, cancelled or failed.';
comment on column reporting.messages.revision is 'How often it was written.';
comment on column reporting.messages.error_code is 'Why the reply failed.';
comment on column reporting.messages.created_at is 'When it was made; a reply is made together with its message.';
comment on column reporting.messages.completed_at is 'When it was final.';
comment on column reporting.messages.updated_at is 'When it was changed last.';
comment on column reporting.messages.reply_seconds is 'Seconds from the message to its final reply.';
