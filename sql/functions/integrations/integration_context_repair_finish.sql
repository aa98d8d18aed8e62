-- Repair queued → applied, by the health report p_report_revision that says it. p_mapping: what was written; if another one was
-- asked for meanwhile it stays queued. There is no other end: it waits as long as no report can be written. A repeat changes nothing.
-- Returns {finished}.
-- Locks: repair.
create or replace function app.integration_context_repair_finish(
  p_organization_id uuid, p_repair_id uuid, p_mapping jsonb, p_report_revision integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  q app.integration_context_repairs;
begin
  select * into q from app.integration_context_repairs
    where organization_id = p_organization_id and id = p_repair_id for no key update;
  if not found or q.status <> 'queued' or q.mapping <> p_mapping then
    return '{"finished": false}';
  end if;
  update app.integration_context_repairs
    set status = 'applied', report_revision = p_report_revision, finished_at = clock_timestamp()
    where organization_id = p_organization_id and id = q.id;
  return '{"finished": true}';
end
$$;
