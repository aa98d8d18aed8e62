-- The defaults of a profile's config.
create or replace function app.agent_profile_defaults(p_organization_id uuid, p_key text)
  returns jsonb
  language sql immutable
as $$
  select jsonb_build_object('defaultRunMode', 'execute', 'maxConcurrentRuns', 5, 'toolPolicyKeys', '[]'::jsonb,
    'memoryRootUri', format('org://%s/profiles/%s/memory', p_organization_id, p_key),
    'runtime', '{"model": "default", "reasoningEffort": "medium"}'::jsonb,
    'skillKeys', '[]'::jsonb, 'mcpServerKeys', '[]'::jsonb)
$$;
