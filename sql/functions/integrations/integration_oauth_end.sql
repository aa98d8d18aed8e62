-- Flow consumed → over, without a connection. p_result: denied | failed | conflict. One that is over keeps its result. Returns
-- {flow}; flow null: unknown. Locks: flow.
create or replace function app.integration_oauth_end(p_organization_id uuid, p_flow_id uuid, p_result text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  o app.integration_oauth_states;
begin
  select * into o from app.integration_oauth_states
    where organization_id = p_organization_id and id = p_flow_id for no key update;
  if found and o.consumed_at is not null and o.result is null then
    update app.integration_oauth_states set result = p_result
      where organization_id = p_organization_id and id = o.id
      returning * into o;
  end if;
  return jsonb_build_object('flow', app.integration_oauth_flow(o));
end
$$;
