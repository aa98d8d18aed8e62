-- Source stored | ingested | failed → ingested | failed, depending on its bytes. Only an ingested source can ground evidence.
-- Returns {source}, null if it is gone. Locks: source. Codes: none.
create or replace function app.context_source_mark(
  p_organization_id uuid, p_source_id uuid, p_status text, p_error jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  s app.context_sources;
begin
  update app.context_sources set status = p_status, error = p_error
    where organization_id = p_organization_id and id = p_source_id
    returning * into s;
  return jsonb_build_object('source', case when found then to_jsonb(s) end);
end
$$;
