-- What an integration has facts of is looked for anew when it is made, connected, configured, enabled or authorized again; not before
-- its provider wants to be asked. So it is of others of its provider where one of them can no longer be used: they may be
-- connected to the same account, of which one collects.
create or replace function app.insight_connectors_wake()
  returns trigger
  language plpgsql
as $$
declare
  v_integration_id uuid;
  v_provider text;
  v_lost boolean := false;
begin
  if tg_op = 'DELETE' then
    update app.insight_connectors k
      set discovery_due_at = clock_timestamp(),
        due_at = case when k.unit_id is null then greatest(clock_timestamp(), k.retry_not_before) else k.due_at end
      from app.integrations i
      where i.organization_id = old.organization_id and i.provider = old.provider
        and k.organization_id = i.organization_id and k.integration_id = i.id and k.discovered_at is not null;
    return null;
  end if;
  if tg_table_name = 'integrations' then
    if tg_op = 'UPDATE' and (new.status, new.settings, new.connection_revision)
        is not distinct from (old.status, old.settings, old.connection_revision) then
      return null;
    end if;
    v_lost := tg_op = 'UPDATE' and (new.status = 'disabled' and old.status = 'enabled'
      or old.connection_revision > 0 and new.connection_revision <> old.connection_revision);
    v_integration_id := new.id;
  else
    if tg_op = 'UPDATE' and (new.reauthorization_reason, new.connected_at)
        is not distinct from (old.reauthorization_reason, old.connected_at) then
      return null;
    end if;
    v_lost := tg_op = 'UPDATE' and new.reauthorization_reason is not null and old.reauthorization_reason is null;
    v_integration_id := new.integration_id;
  end if;
  insert into app.insight_connectors as k (organization_id, integration_id, due_at, discovery_due_at)
    values (new.organization_id, v_integration_id, clock_timestamp(), clock_timestamp())
    on conflict (organization_id, integration_id) do update
      set discovery_due_at = excluded.discovery_due_at, failure_count = 0,
        due_at = case when k.unit_id is null then greatest(excluded.due_at, k.retry_not_before) else k.due_at end;
  if v_lost then
    select i.provider into v_provider from app.integrations i
      where i.organization_id = new.organization_id and i.id = v_integration_id;
    update app.insight_connectors k
      set discovery_due_at = clock_timestamp(),
        due_at = case when k.unit_id is null then greatest(clock_timestamp(), k.retry_not_before) else k.due_at end
      from app.integrations i
      where i.organization_id = new.organization_id and i.provider = v_provider and i.id <> v_integration_id
        and k.organization_id = i.organization_id and k.integration_id = i.id and k.discovered_at is not null;
  end if;
  return null;
end
$$;
