-- A limit that is raised, of an organization or of a lane, or a suspension that is lifted, opens it for waiting pulls.
create or replace function app.dispatch_wake()
  returns trigger
  language plpgsql
as $$
begin
  perform app.wake('runner_pull', new.organization_id || ' ' || new.kind);
  return null;
end
$$;
