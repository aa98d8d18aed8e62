-- A pull may wait for the new key of a profile.
create or replace function app.agent_profiles_wake()
  returns trigger
  language plpgsql
as $$
begin
  perform app.wake('runner_pull', new.organization_id || ' task');
  perform app.wake('runner_pull', new.organization_id || ' chat');
  return null;
end
$$;
