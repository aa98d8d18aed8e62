create view reporting.actions with (security_barrier) as
select
  a.organization_id,
  a.id as action_id,
  a.integration_id,
  a.integration_key,
  a.provider,
  a.agent_profile_id,
  a.task_id,
  a.run_id,
  a.chat_id,
  a.retry_of,
  a.kind::text as kind,
  a.tool,
  a.risk::text as risk,
  a.status::text as status,
  a.requires_approval,
  a.decision::text as decision,
  a.decided_at,
  extract(epoch from a.decided_at - a.created_at) as decision_seconds,
  a.execution_attempts,
  a.execution_started_at,
  a.execution_finished_at,
  extract(epoch from a.execution_finished_at - a.execution_started_at) as execution_seconds,
  a.error ->> 'code' as error_code,
  a.reconciliation::text as reconciliation,
  a.reconciled_at,
  a.reason ->> 'code' as reason_code,
  case when a.status in ('succeeded', 'failed', 'rejected', 'expired', 'cancelled', 'not_executed') then a.updated_at end as ended_at,
  a.created_at,
  a.updated_at
from app.actions a;

comment on view reporting.actions is
  'What agents proposed to change outside, what people decided and what became of it, without what it was about.';
comment on column reporting.actions.organization_id is 'The organization.';
comment on column reporting.actions.action_id is 'The action.';
comment on column reporting.actions.integration_id is 'The integration that it is for; it may be gone.';
comment on column reporting.actions.integration_key is 'Key of the integration when it was proposed.';
comment on column reporting.actions.provider is 'The provider: stripe, github and so on.';
comment on column reporting.actions.agent_profile_id is 'The profile whose agent proposed it.';
comment on column reporting.actions.task_id is 'The task that it was proposed for; null in a chat.';
comment on column reporting.actions.run_id is 'The run that proposed it.';
comment on column reporting.actions.chat_id is 'The chat that it was proposed in; null for a task.';
comment on column reporting.actions.retry_of is 'The action that it is another attempt at.';
comment on column reporting.actions.kind is 'provider_write: by a tool. git_push: branches of a repository.';
comment on column reporting.actions.tool is 'The tool that does it.';
comment on column reporting.actions.risk is 'low, external or high.';
comment on column reporting.actions.status is
  'awaiting_approval, approved, executing or unknown; over when succeeded, failed, rejected, expired, cancelled or not_executed.';
comment on column reporting.actions.requires_approval is 'Whether an owner has to approve it.';
comment on column reporting.actions.decision is 'What an owner decided: approved or rejected; null: nothing.';
comment on column reporting.actions.decided_at is 'When.';
comment on column reporting.actions.decision_seconds is 'Seconds from the proposal to the decision; null without one.';
comment on column reporting.actions.execution_attempts is 'How often a job took it up to execute it; it is sent once at most.';
comment on column reporting.actions.execution_started_at is 'When its execution began.';
comment on column reporting.actions.execution_finished_at is 'When its outcome was known, or known to be unknown.';
comment on column reporting.actions.execution_seconds is 'Seconds between the two.';
comment on column reporting.actions.error_code is 'Why it failed; null unless it did.';
comment on column reporting.actions.reconciliation is 'What a person found out of one whose outcome was unknown.';
comment on column reporting.actions.reconciled_at is 'When.';
comment on column reporting.actions.reason_code is 'Why it was cancelled, expired or sent back to be approved.';
comment on column reporting.actions.ended_at is 'When it was over; null while it is not.';
comment on column reporting.actions.created_at is 'When it was proposed.';
comment on column reporting.actions.updated_at is 'When it was changed last.';
