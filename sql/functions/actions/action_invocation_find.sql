-- The invocation of an execution by the name that its caller chose, or a null row. One name is for one body.
-- Codes: 409 state_conflict (differs).
create or replace function app.action_invocation_find(
  p_organization_id uuid, p_run_id uuid, p_integration_id uuid, p_invocation_id text, p_body_sha256 text)
  returns app.action_invocations
  language plpgsql
as $$
declare
  n app.action_invocations;
begin
  select * into n from app.action_invocations
    where organization_id = p_organization_id and run_id = p_run_id and integration_id = p_integration_id
      and invocation_id = p_invocation_id;
  if n.body_sha256 <> p_body_sha256 then
    perform app.fail(409, 'state_conflict', 'This invocation was called with another body',
      app.issue('invocationId', 'differs', 'the first body counts'));
  end if;
  return n;
end
$$;
