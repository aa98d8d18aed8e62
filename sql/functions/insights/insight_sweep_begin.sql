-- Adds the job that removes files of an organization that no row names, and puts the next one off by a day. A repeat changes nothing.
-- Returns {begun}. Locks: head. Codes: none.
create or replace function app.insight_sweep_begin(p_organization_id uuid)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_begun boolean;
begin
  update app.insight_heads set sweep_at = clock_timestamp() + interval '1 day'
    where organization_id = p_organization_id and sweep_at <= clock_timestamp();
  v_begun := found;
  if v_begun then
    perform app.enqueue('insights__clean_files', jsonb_build_object('organizationId', p_organization_id),
      'insights__clean_files:' || p_organization_id);
  end if;
  return jsonb_build_object('begun', v_begun);
end
$$;
