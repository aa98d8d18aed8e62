create view reporting.tasks with (security_barrier) as
select
  t.organization_id,
  t.id as task_id,
  t.identifier_scope || '-' || t.identifier_number as identifier,
  t.kind::text as kind,
  t.status::text as status,
  t.phase::text as phase,
  t.title,
  t.priority,
  t.depth,
  t.parent_id as parent_task_id,
  t.root_task_id,
  t.owner_agent_profile_id,
  t.source_chat_id,
  t.source_message_id,
  t.schedule_id,
  t.created_by_run_id,
  t.spec ->> 'verification' as verification,
  jsonb_array_length(jsonb_path_query_array(t.spec, '$.acceptanceCriteria[*]')) as acceptance_criteria,
  array(select distinct b ->> 'kind' from jsonb_array_elements(t.blockers) b order by 1) as blocked_by,
  t.error ->> 'code' as error_code,
  t.failure_origin_id as failure_origin_task_id,
  t.agent_run_count as agent_runs,
  t.consumed_agent_run_count as consumed_agent_runs,
  t.replan_count as replans,
  t.waiting_until,
  t.scheduled_at,
  t.due_at,
  t.started_at,
  t.completed_at,
  t.created_at,
  t.updated_at,
  extract(epoch from t.completed_at - t.created_at) as lead_seconds
from app.tasks t;

comment on view reporting.tasks is 'Tasks and initiatives, without what they are about beyond the title.';
comment on column reporting.tasks.organization_id is 'The organization.';
comment on column reporting.tasks.task_id is 'The task.';
comment on column reporting.tasks.identifier is 'Its number in the organization, for example T-12 or I-3.';
comment on column reporting.tasks.kind is 'task or initiative.';
comment on column reporting.tasks.status is 'pending, blocked, running, waiting, completed, failed or cancelled.';
comment on column reporting.tasks.phase is 'plan, execute, verify or closed.';
comment on column reporting.tasks.title is 'Title.';
comment on column reporting.tasks.priority is 'Higher goes first.';
comment on column reporting.tasks.depth is '0 for a root.';
comment on column reporting.tasks.parent_task_id is 'The initiative that it is directly below.';
comment on column reporting.tasks.root_task_id is 'The root of its hierarchy; its own id for a root.';
comment on column reporting.tasks.owner_agent_profile_id is 'The profile that does it.';
comment on column reporting.tasks.source_chat_id is 'The chat that it comes from.';
comment on column reporting.tasks.source_message_id is 'The message that it comes from.';
comment on column reporting.tasks.schedule_id is 'The schedule that made it.';
comment on column reporting.tasks.created_by_run_id is 'The run that made it.';
comment on column reporting.tasks.verification is 'backend, or agent: its result needs the verdict of another agent.';
comment on column reporting.tasks.acceptance_criteria is 'How many acceptance criteria it has.';
comment on column reporting.tasks.blocked_by is
  'Kinds of what blocks it: dependency, children, schedule, human, action, budget, profile.';
comment on column reporting.tasks.error_code is 'Why it failed.';
comment on column reporting.tasks.failure_origin_task_id is
  'The task whose failure failed or cancelled it; itself, where it is the origin.';
comment on column reporting.tasks.agent_runs is 'Its runs.';
comment on column reporting.tasks.consumed_agent_runs is 'Its runs and those of all tasks below it.';
comment on column reporting.tasks.replans is 'How often it was planned again.';
comment on column reporting.tasks.waiting_until is 'When it goes on, while it waits for a time.';
comment on column reporting.tasks.scheduled_at is 'It does not start earlier.';
comment on column reporting.tasks.due_at is 'When it should be done.';
comment on column reporting.tasks.started_at is 'When its first run started.';
comment on column reporting.tasks.completed_at is 'When it was completed.';
comment on column reporting.tasks.created_at is 'When it was made.';
comment on column reporting.tasks.updated_at is 'When it was changed last.';
comment on column reporting.tasks.lead_seconds is 'Seconds from its making to its completion.';
