create view reporting.chats with (security_barrier) as
select
  c.organization_id,
  c.id as chat_id,
  c.status::text as status,
  c.is_onboarding,
  (select count(*) from app.messages m
    where m.organization_id = c.organization_id and m.chat_id = c.id) as messages,
  (select count(*) from app.messages m
    where m.organization_id = c.organization_id and m.chat_id = c.id and m.role = 'assistant') as replies,
  (select count(*) from app.messages m
    where m.organization_id = c.organization_id and m.chat_id = c.id and m.status = 'failed') as failed_replies,
  (select count(*) from app.chat_attachments a
    where a.organization_id = c.organization_id and a.chat_id = c.id) as attachments,
  (select coalesce(sum(a.size_bytes), 0)::bigint from app.chat_attachments a
    where a.organization_id = c.organization_id and a.chat_id = c.id) as attachment_bytes,
  -- By the requests of its replies, which have an index; each only where it is asked for.
  (select count(*) from app.messages m
    join app.run_requests q on q.organization_id = m.organization_id and q.message_id = m.id
    join app.runs r on r.organization_id = q.organization_id and r.run_request_id = q.id
    where m.organization_id = c.organization_id and m.chat_id = c.id and r.finished_at is not null
      and not r.cost_known) as turns_with_unknown_cost,
  (select coalesce(sum(r.cost_minor_units) filter (where r.cost_known), 0) from app.messages m
    join app.run_requests q on q.organization_id = m.organization_id and q.message_id = m.id
    join app.runs r on r.organization_id = q.organization_id and r.run_request_id = q.id
    where m.organization_id = c.organization_id and m.chat_id = c.id
      and r.finished_at is not null) as known_cost_minor_units,
  (select case when coalesce(bool_and(r.cost_known), true) then coalesce(sum(r.cost_minor_units), 0) end from app.messages m
    join app.run_requests q on q.organization_id = m.organization_id and q.message_id = m.id
    join app.runs r on r.organization_id = q.organization_id and r.run_request_id = q.id
    where m.organization_id = c.organization_id and m.chat_id = c.id
      and r.finished_at is not null) as cost_minor_units,
  c.last_message_at,
  c.archived_at,
  c.created_at,
  c.updated_at
from app.chats c
where c.removed_at is null;

comment on view reporting.chats is 'Chats, without what is said in them.';
comment on column reporting.chats.organization_id is 'The organization.';
comment on column reporting.chats.chat_id is 'The chat.';
comment on column reporting.chats.status is 'open or archived.';
comment on column reporting.chats.is_onboarding is 'Whether it is the chat of the onboarding.';
comment on column reporting.chats.messages is 'How many messages it has.';
comment on column reporting.chats.replies is 'How many of them are replies.';
comment on column reporting.chats.failed_replies is 'How many of them failed.';
comment on column reporting.chats.attachments is 'How many files it has.';
comment on column reporting.chats.attachment_bytes is 'The size of its files.';
comment on column reporting.chats.turns_with_unknown_cost is
  'Replies that ended without a report of their cost: it is unknown, not zero.';
comment on column reporting.chats.known_cost_minor_units is
  'What the other ones cost, in minor units of the currency: the least that all cost.';
comment on column reporting.chats.cost_minor_units is 'What all cost; null where the cost of one is unknown.';
comment on column reporting.chats.last_message_at is 'When its last message was written; its making, where there is none.';
comment on column reporting.chats.archived_at is 'When it was archived.';
comment on column reporting.chats.created_at is 'When it was made.';
comment on column reporting.chats.updated_at is 'When it was changed last.';
