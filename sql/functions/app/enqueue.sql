-- Adds a job in the caller's transaction. The migrating login owns it, as it owns the queue's schema. Only for rare effects:
-- every add_job notifies, and notifying transactions commit one after another.
-- The key is required: the queue takes a job without one for a job that was replaced while it ran.
create or replace function app.enqueue(
  p_task text, p_payload jsonb, p_job_key text default null, p_max_attempts integer default 25)
  returns void
  language plpgsql security definer
as $$
begin
  if p_job_key is null then
    raise exception 'a job needs a key';
  end if;
  perform graphile_worker.add_job(p_task, p_payload::json, job_key => p_job_key, max_attempts => p_max_attempts);
end
$$;
