-- Stores the tools that a provider has: [{key, title, description, effect, risk, requiredScopes, inputSchema, digest}].
-- What an owner decided belongs to the digest: a new tool is off, and one with another digest is off again, with the effect that
-- it is given here. What is not among them is not offered any more, and off. The caller has locked the integration.
create or replace function app.integration_tools_write(p_organization_id uuid, p_integration_id uuid, p_tools jsonb)
  returns void
  language sql
as $$
  update app.integration_tools set offered = false, enabled = false
    where organization_id = p_organization_id and integration_id = p_integration_id and offered
      and not exists (select from jsonb_array_elements(p_tools) g where g ->> 'key' = integration_tools.key);
  insert into app.integration_tools as t (organization_id, integration_id, key, place, title, description, effect, risk,
      required_scopes, input_schema, digest)
    select p_organization_id, p_integration_id, g.tool ->> 'key', g.place, g.tool ->> 'title',
        coalesce(g.tool ->> 'description', ''), g.tool ->> 'effect', g.tool ->> 'risk',
        coalesce(g.tool -> 'requiredScopes', '[]'), g.tool -> 'inputSchema', g.tool ->> 'digest'
      from jsonb_array_elements(p_tools) with ordinality g(tool, place)
    on conflict (organization_id, integration_id, key) do update
      set place = excluded.place, title = excluded.title, description = excluded.description,
        risk = excluded.risk, required_scopes = excluded.required_scopes, input_schema = excluded.input_schema,
        digest = excluded.digest, offered = true,
        enabled = t.enabled and t.digest = excluded.digest,
        effect = case when t.digest = excluded.digest then t.effect else excluded.effect end
      where (t.place, t.title, t.description, t.risk, t.required_scopes, t.input_schema, t.digest, t.offered)
        is distinct from (excluded.place, excluded.title, excluded.description, excluded.risk,
          excluded.required_scopes, excluded.input_schema, excluded.digest, true)
$$;
