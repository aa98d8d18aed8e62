-- Action executing → unknown: nothing shows what became of it, so a person has to find out, by an item in the inbox (reconciliation).
-- The caller has locked the action. Returns it.
create or replace function app.action_unknown(a app.actions)
  returns app.actions
  language plpgsql
as $$
declare
  n app.actions;
begin
  update app.actions
    set status = 'unknown', version = version + 1, execution_finished_at = clock_timestamp(), due_at = null, lease_expires_at = null,
      updated_at = clock_timestamp()
    where organization_id = a.organization_id and id = a.id
    returning * into n;
  perform app.action_item_open(n);
  return n;
end
$$;
