-- Locks a file of an invocation, or a null row. One id is for one file: {name, contentType, sizeBytes, sha256}.
-- Locks: file. Codes: 409 state_conflict (differs).
create or replace function app.action_file_lock(
  p_organization_id uuid, p_run_id uuid, p_integration_id uuid, p_invocation_id text, p_file_id uuid, p_file jsonb)
  returns app.action_invocation_files
  language plpgsql
as $$
declare
  f app.action_invocation_files;
begin
  select * into f from app.action_invocation_files
    where organization_id = p_organization_id and run_id = p_run_id and integration_id = p_integration_id
      and invocation_id = p_invocation_id and id = p_file_id
    for update;
  if found and app.action_file_record(f) - 'fileId' <> p_file then
    perform app.fail(409, 'state_conflict', 'Another file has this id in this invocation',
      app.issue('fileId', 'differs', 'the first name, type, size and digest count'));
  end if;
  return f;
end
$$;
