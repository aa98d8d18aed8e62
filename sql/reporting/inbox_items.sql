create view reporting.inbox_items with (security_barrier) as
select
  i.organization_id,
  i.id as inbox_item_id,
  i.kind::text as kind,
  i.purpose::text as purpose,
  i.status::text as status,
  i.blocking,
  i.task_id,
  i.run_id,
  i.chat_id,
  i.schedule_id,
  i.responded_at,
  case when i.status <> 'open' then coalesce(i.responded_at, i.updated_at) end as closed_at,
  i.created_at,
  extract(epoch from case when i.status = 'open' then now() else coalesce(i.responded_at, i.updated_at) end - i.created_at) as wait_seconds
from app.human_inbox_items i;

comment on view reporting.inbox_items is 'The inbox: questions and notifications to people, without their texts.';
comment on column reporting.inbox_items.organization_id is 'The organization.';
comment on column reporting.inbox_items.inbox_item_id is 'The item.';
comment on column reporting.inbox_items.kind is 'question, notification, approval or reconciliation.';
comment on column reporting.inbox_items.purpose is
  'Why it was asked: repair, budget, needs_input, prerequisite, agent, schedule or failure.';
comment on column reporting.inbox_items.status is 'open, responded, acknowledged, resolved or cancelled.';
comment on column reporting.inbox_items.blocking is 'Whether its task waits for the answer.';
comment on column reporting.inbox_items.task_id is 'The task that it is about.';
comment on column reporting.inbox_items.run_id is 'The run that asked.';
comment on column reporting.inbox_items.chat_id is 'The chat that it is about.';
comment on column reporting.inbox_items.schedule_id is 'The schedule that it is about.';
comment on column reporting.inbox_items.responded_at is 'When a person answered or acknowledged it.';
comment on column reporting.inbox_items.closed_at is 'When it was over, also without an answer.';
comment on column reporting.inbox_items.created_at is 'When it was asked.';
comment on column reporting.inbox_items.wait_seconds is 'Seconds from the question to its end; so far, while it is open.';
