-- Decides which tools agents may use (docs/interface.md 4.10). p_change: {accessMode?, tools?, effects?, digests?}, validated in
-- shape. accessMode: default read_only. tools: exactly these are on; without it all that the mode admits and the granted scopes
-- cover. effects: {tool: read | write}, where the provider leaves that to the owner. digests: {tool: digest} as the owner saw them:
-- what this enables has to be among them and unchanged, so that a discovery meanwhile slips nothing in. Returns {integration}.
-- Locks: organization → integration. Codes: 400 validation_failed (unknown_tool, not_offered, read_only), 404
-- organization_not_found | integration_not_found, 409 integration_conflict (tool_changed).
create or replace function app.integration_tools_put(p_organization_id uuid, p_integration_ref text, p_change jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_issues jsonb;
  i app.integrations := app.integration_lock(p_organization_id, p_integration_ref, true);
  c app.integration_connections;
begin
  select * into c from app.integration_connections where organization_id = p_organization_id and integration_id = i.id;
  -- Of the effects that the call asks for.
  select jsonb_agg(jsonb_build_object('path', g.path, 'code', g.code, 'message', g.message)) into v_issues
    from (
      select 'tools.' || (w.place - 1) as path, x.code,
          case x.code when 'unknown_tool' then 'is no tool of this integration'
            when 'not_offered' then 'is not offered by the provider any more'
            else 'writes, and the access mode is read_only' end as message
        from jsonb_array_elements_text(p_change -> 'tools') with ordinality w(key, place)
        left join app.integration_tools t
          on t.organization_id = p_organization_id and t.integration_id = i.id and t.key = w.key
        cross join lateral (select case
          when t.key is null then 'unknown_tool'
          when not t.offered then 'not_offered'
          when coalesce(p_change #>> array['effects', t.key], t.effect) = 'write'
            and coalesce(p_change ->> 'accessMode', 'read_only') = 'read_only' then 'read_only' end) x(code)
        where x.code is not null
      union all
      select 'effects.' || e.key, 'unknown_tool', 'is no tool of this integration'
        from jsonb_each(p_change -> 'effects') e
        where not exists (select from app.integration_tools t
          where t.organization_id = p_organization_id and t.integration_id = i.id and t.key = e.key)) g;
  if v_issues is not null then
    perform app.fail(400, 'validation_failed', 'Some of the tools cannot be chosen', v_issues);
  end if;
  update app.integrations set access_mode = coalesce(p_change ->> 'accessMode', 'read_only'), updated_at = clock_timestamp()
    where organization_id = p_organization_id and id = i.id
    returning * into i;
  update app.integration_tools t set effect = p_change #>> array['effects', t.key]
    where t.organization_id = p_organization_id and t.integration_id = i.id and p_change -> 'effects' ? t.key
      and t.effect <> p_change #>> array['effects', t.key];
  update app.integration_tools t set enabled = n.enabled
    from (
      select o.key, case
          when p_change ? 'tools' then p_change -> 'tools' ? o.key
          -- What is not connected has no scopes yet; whether they are covered shows when they are there.
          else coalesce(app.integration_tool_unavailable(i, c, o), 'not_connected') = 'not_connected' end as enabled
        from app.integration_tools o where o.organization_id = p_organization_id and o.integration_id = i.id) n
    where t.organization_id = p_organization_id and t.integration_id = i.id and t.key = n.key and t.enabled <> n.enabled;
  select jsonb_agg(jsonb_build_object('path', 'digests.' || t.key, 'code', 'tool_changed',
        'message', 'has changed since it was read, or is new') order by t.place, t.key) into v_issues
    from app.integration_tools t
    where t.organization_id = p_organization_id and t.integration_id = i.id and t.enabled and p_change ? 'digests'
      and t.digest is distinct from p_change #>> array['digests', t.key];
  if v_issues is not null then
    perform app.fail(409, 'integration_conflict', 'Tools have changed meanwhile: read them again', v_issues);
  end if;
  return jsonb_build_object('integration', app.integration_record(i));
end
$$;
