-- Adds a job in the transaction of the caller. It stays with the migrating login, which owns the queue's schema;
-- it is for rare effects alone, because every add_job notifies (and notifiers commit one after the other).
-- The key is required: a job without one is taken for one that was replaced while it ran.
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
