-- A request that is published, or that frees a slot, may be what a waiting pull needs, whatever function moves it.
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
