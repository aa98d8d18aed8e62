-- An organization or a lane opens for waiting pulls: its limit was raised, or its suspension lifted.
create or replace function app.dispatch_wake()
  returns trigger
  language plpgsql
as $$
begin
  perform app.wake('runner_pull', new.organization_id || ' ' || new.kind);
  return null;
end
$$;
