-- Executions with invocations or files that may not be needed any more, in turns over the organizations (see due_in_turns). Reads only;
-- action_invocations_remove decides.
create or replace function app.action_invocations_due(p_organizations integer, p_rows integer, p_after uuid default null)
  returns table (organization_id uuid, run_id uuid)
  language sql stable security definer
as $$
  select distinct d.organization_id, d.id
    from (
      select * from app.due_in_turns('action_invocations', 'remove_at', 'true', clock_timestamp(), p_after, p_organizations,
        p_rows, 'run_id')
      union all
      select * from app.due_in_turns('action_invocation_files', 'remove_at', 'true', clock_timestamp(), p_after, p_organizations,
        p_rows, 'run_id')) d
$$;
