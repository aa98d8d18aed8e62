-- A waiting pull may take what is published, and what was published when a slot becomes free. A trigger, so that no function
-- that moves a request can forget it.
create or replace function app.run_requests_wake()
  returns trigger
  language plpgsql
as $$
begin
  if new.state = 'published' or tg_op = 'UPDATE' and old.state in ('leased', 'started') then
    perform app.wake('runner_pull', new.organization_id || ' ' || new.kind);
  end if;
  return null;
end
$$;
