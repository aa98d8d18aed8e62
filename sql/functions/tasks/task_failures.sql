-- How earlier runs of a task ended without success, the latest first: what the next run has to know. Five are enough to see
-- a pattern.
create or replace function app.task_failures(p_organization_id uuid, p_task_id uuid)
  returns jsonb
  language sql stable
as $$
  select coalesce(jsonb_agg(f.failure), '[]')
  from (
    select jsonb_build_object('runId', u.id, 'mode', u.mode, 'status', u.status,
        'error', u.error - 'retryable') as failure
      from app.runs u
      where u.organization_id = p_organization_id and u.task_id = p_task_id and u.status in ('failed', 'expired')
      order by u.created_at desc, u.id desc
      limit 5
  ) f
$$;
