-- Refuses a further file of an execution that has 1,000 of them. Exact among those that call it in transactions that add one: they
-- follow each other. Locks: the files of the execution (advisory). Codes: 409 state_conflict (too_many_files).
create or replace function app.action_files_limit(p_organization_id uuid, p_run_id uuid)
  returns void
  language plpgsql
as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('action_files:' || p_run_id, 0));
  if (select count(*) from app.action_invocation_files
      where organization_id = p_organization_id and run_id = p_run_id) >= 1000 then
    perform app.fail(409, 'state_conflict', 'An execution has at most 1000 files',
      app.issue('fileId', 'too_many_files', 'send fewer files'));
  end if;
end
$$;
