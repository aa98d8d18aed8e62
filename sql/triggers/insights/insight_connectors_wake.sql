-- What an integration has facts of is looked for anew when it is made, connected, configured, enabled or authorized again; not before
-- its provider wants to be asked.
create or replace function app.insight_connectors_wake()
  returns trigger
  language plpgsql
as $$
declare
  v_integration_id uuid;
begin
  if tg_table_name = 'integrations' then
    if tg_op = 'UPDATE' and (new.status, new.settings, new.connection_revision)
        is not distinct from (old.status, old.settings, old.connection_revision) then
      return null;
    end if;
    v_integration_id := new.id;
  else
    if tg_op = 'UPDATE' and (new.reauthorization_reason, new.connected_at)
        is not distinct from (old.reauthorization_reason, old.connected_at) then
      return null;
    end if;
    v_integration_id := new.integration_id;
  end if;
  insert into app.insight_connectors as k (organization_id, integration_id, due_at, discovery_due_at)
    values (new.organization_id, v_integration_id, clock_timestamp(), clock_timestamp())
    on conflict (organization_id, integration_id) do update
      set discovery_due_at = excluded.discovery_due_at, failure_count = 0,
        due_at = case when k.unit_id is null then greatest(excluded.due_at, k.retry_not_before) else k.due_at end;
  return null;
end
$$;
