create view reporting.run_requests with (security_barrier) as
select
  q.organization_id,
  q.id as run_request_id,
  q.kind::text as kind,
  q.task_id,
  q.chat_id,
  q.message_id,
  q.agent_profile_id,
  q.mode::text as mode,
  q.state::text as state,
  q.parked,
  q.priority,
  q.attempt as attempts,
  q.due_at,
  q.published_at,
  r.started_at as first_started_at,
  q.cancel_requested_at,
  q.finished_at,
  q.created_at,
  extract(epoch from r.started_at - q.created_at) as queue_wait_seconds,
  case
    when q.state in ('queued', 'published', 'leased') and q.attempt = 0 then extract(epoch from now() - q.created_at)
  end as waiting_seconds
from app.run_requests q
-- One at most, by a unique key: left out of queries that do not ask for the start.
left join app.runs r on r.organization_id = q.organization_id and r.run_request_id = q.id and r.attempt = 1;

comment on view reporting.run_requests is 'Requests for runs: what waits for a worker, and how long it waited.';
comment on column reporting.run_requests.organization_id is 'The organization.';
comment on column reporting.run_requests.run_request_id is 'The request.';
comment on column reporting.run_requests.kind is 'task, or chat: the reply to a message.';
comment on column reporting.run_requests.task_id is 'The task that is to be worked on.';
comment on column reporting.run_requests.chat_id is 'The chat that is to be replied in.';
comment on column reporting.run_requests.message_id is 'The reply that is to be written.';
comment on column reporting.run_requests.agent_profile_id is 'The profile that it is for.';
comment on column reporting.run_requests.mode is 'plan, execute or verify.';
comment on column reporting.run_requests.state is 'queued, published, leased, started, finished or cancelled.';
comment on column reporting.run_requests.parked is 'Queued because work dispatch is stopped.';
comment on column reporting.run_requests.priority is 'Higher goes first.';
comment on column reporting.run_requests.attempts is 'How often it was started.';
comment on column reporting.run_requests.due_at is 'When it may be published; after a failure, the end of the backoff.';
comment on column reporting.run_requests.published_at is 'When it was offered to workers last.';
comment on column reporting.run_requests.first_started_at is 'When a worker started it first.';
comment on column reporting.run_requests.cancel_requested_at is 'Since when its run is asked to stop.';
comment on column reporting.run_requests.finished_at is 'When it was over.';
comment on column reporting.run_requests.created_at is
  'When it was made: from then on it waits, also while work dispatch is stopped.';
comment on column reporting.run_requests.queue_wait_seconds is
  'Seconds from its making to its first start; null until it is started.';
comment on column reporting.run_requests.waiting_seconds is
  'Seconds that it has waited so far, while it has never been started and is not over.';
