create view reporting.runs with (security_barrier) as
select
  r.organization_id,
  r.id as run_id,
  r.kind::text as kind,
  r.task_id,
  r.chat_id,
  r.message_id,
  r.run_request_id,
  r.agent_profile_id,
  r.attempt,
  r.mode::text as mode,
  r.status::text as status,
  coalesce(r.output #>> '{result,kind}', r.output ->> 'kind') as outcome,
  r.output #>> '{result,completion,disposition}' as disposition,
  r.error ->> 'code' as error_code,
  (r.error ->> 'retryable')::boolean as error_retryable,
  r.worker_id,
  r.harness,
  r.model,
  r.log_state::text as log_state,
  r.log_count as log_entries,
  r.input_tokens,
  r.output_tokens,
  r.tool_calls,
  case when r.cost_known then r.cost_minor_units end as cost_minor_units,
  case
    when r.attempt = 1 then extract(epoch from r.started_at - q.created_at)
    when r.attempt = q.attempt and q.due_at < r.started_at then extract(epoch from r.started_at - q.due_at)
  end as queue_wait_seconds,
  extract(epoch from r.finished_at - r.started_at) as duration_seconds,
  r.started_at,
  r.finished_at,
  r.created_at
from app.runs r
-- By its primary key, so it is left out of queries that do not ask for the wait.
left join app.run_requests q on q.organization_id = r.organization_id and q.id = r.run_request_id;

comment on view reporting.runs is
  'Runs of tasks and of chat turns: how long they waited and took, how they ended, what they used.';
comment on column reporting.runs.organization_id is 'The organization.';
comment on column reporting.runs.run_id is 'The run.';
comment on column reporting.runs.kind is 'task, or chat: the reply to a message.';
comment on column reporting.runs.task_id is 'The task that it works on.';
comment on column reporting.runs.chat_id is 'The chat that it replies in.';
comment on column reporting.runs.message_id is 'The reply that it writes.';
comment on column reporting.runs.run_request_id is 'The request that it was started for.';
comment on column reporting.runs.agent_profile_id is 'The profile that it runs as.';
comment on column reporting.runs.attempt is 'Which start of its request it is.';
comment on column reporting.runs.mode is 'plan, execute or verify.';
comment on column reporting.runs.status is 'starting, running, succeeded, failed, cancelled or expired.';
comment on column reporting.runs.outcome is
  'What it ended with: completed, waiting, needs_input, plan, verification or chat_message.';
comment on column reporting.runs.disposition is 'passed or failed: whether the result met the acceptance criteria.';
comment on column reporting.runs.error_code is 'Why it failed.';
comment on column reporting.runs.error_retryable is 'Whether its failure could be tried again.';
comment on column reporting.runs.worker_id is 'The worker that ran it.';
comment on column reporting.runs.harness is 'What the worker ran it in.';
comment on column reporting.runs.model is 'The model, as the worker reported it.';
comment on column reporting.runs.log_state is 'not_recorded, recording, complete or truncated.';
comment on column reporting.runs.log_entries is 'How many log entries it has.';
comment on column reporting.runs.input_tokens is 'Tokens read; 0 until it is over.';
comment on column reporting.runs.output_tokens is 'Tokens written; 0 until it is over.';
comment on column reporting.runs.tool_calls is 'Calls of tools; 0 until it is over.';
comment on column reporting.runs.cost_minor_units is
  'What it cost, in minor units of the currency; null where the cost was not reported, which is not zero.';
comment on column reporting.runs.queue_wait_seconds is
  'Seconds that it waited for a worker: the first attempt from the request on, the latest from the end of its backoff on; null for those between, of which this is not kept.';
comment on column reporting.runs.duration_seconds is 'Seconds from its start to its end.';
comment on column reporting.runs.started_at is 'When a worker started it.';
comment on column reporting.runs.finished_at is 'When it was over.';
comment on column reporting.runs.created_at is 'When it was recorded.';
