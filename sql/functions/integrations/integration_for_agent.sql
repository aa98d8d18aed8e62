-- An integration as agents see it: nothing of the connection, and no health. p: the profile; without one all that is enabled is a
-- capability. A read needs the policy integrations.read, a write integrations.propose.
create or replace function app.integration_for_agent(i app.integrations, p app.agent_profiles, p_allowed jsonb)
  returns jsonb
  language plpgsql stable
as $$
declare
  v_reason text;
  c app.integration_connections;
begin
  select * into c from app.integration_connections where organization_id = i.organization_id and integration_id = i.id;
  v_reason := app.integration_unavailable(i, c, p, p_allowed);
  return jsonb_build_object('id', i.id, 'key', i.key, 'provider', i.provider, 'name', i.name,
    'readiness', replace(app.integration_readiness(i, c), 'degraded', 'ready'), 'accessMode', i.access_mode,
    'departments', i.departments, 'available', v_reason is null, 'unavailableReason', v_reason,
    'capabilities', case when v_reason is not null then '[]'::jsonb else (
      select coalesce(jsonb_agg(jsonb_build_object('tool', t.key, 'effect', t.effect, 'risk', t.risk,
          'inputSchema', t.input_schema) order by t.place, t.key), '[]')
        from app.integration_tools t
        where t.organization_id = i.organization_id and t.integration_id = i.id and t.enabled
          and app.integration_tool_unavailable(i, c, t) is null
          and (p.id is null or p.config -> 'toolPolicyKeys' ? case t.effect when 'read' then 'integrations.read'
            else 'integrations.propose' end)) end);
end
$$;
