-- Refuses a call of the run lifecycle: 409 run_lease_expired, with the reason as the code of the issue (docs/interface.md
-- 4.13).
create or replace function app.lease_refuse(p_reason text)
  returns void
  language plpgsql
as $$
declare
  v_message text := case p_reason
    when 'lease_lost' then 'The lease is missing, stale or expired'
    when 'capacity' then 'The organization or the profile has no free capacity'
    when 'task_not_ready' then 'The task is not ready to run'
    when 'differs' then 'This call was made before with other content'
  end;
begin
  perform app.fail(409, 'run_lease_expired', v_message, app.issue('leaseToken', p_reason, v_message));
end
$$;
