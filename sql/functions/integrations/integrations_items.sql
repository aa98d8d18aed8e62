-- The items of a page of integrations (see integrations_page), always in the order of keys: for their owner, or for an agent with the
-- profile p and what the organization allows (see integration_for_agent). It ends early, `cut`, after 4 MiB of items, and always has
-- one. Returns {integrations, cut}.
create or replace function app.integrations_items(
  p_organization_id uuid, p_key text, p_inclusive boolean, p_backward boolean, p_limit integer, p_for_agent boolean,
  p app.agent_profiles, p_allowed jsonb)
  returns jsonb
  language plpgsql stable
as $$
declare
  v_items jsonb[] := '{}';
  v_bytes bigint := 0;
  v_cut boolean := false;
  v_item jsonb;
  i app.integrations;
begin
  for i in select * from app.integrations_page(p_organization_id, p_key, p_inclusive, p_backward, p_limit) loop
    v_cut := v_bytes >= 4194304;
    exit when v_cut;
    v_item := case when p_for_agent then app.integration_for_agent(i, p, p_allowed) else app.integration_record(i) end;
    v_bytes := v_bytes + pg_column_size(v_item);
    v_items := case when p_backward then array_prepend(v_item, v_items) else array_append(v_items, v_item) end;
  end loop;
  return jsonb_build_object('integrations', to_jsonb(v_items), 'cut', v_cut);
end
$$;
