-- Why a profile may not use an integration now, or null (docs/interface.md 4.12). c: its connection, null without one. p: the
-- profile; without one, only the integration is checked. p_allowed: constraints.allowedIntegrations.
create or replace function app.integration_unavailable(
  i app.integrations, c app.integration_connections, p app.agent_profiles, p_allowed jsonb)
  returns text
  language sql immutable
as $$
  select case
    when i.status <> 'enabled' then 'disabled'
    when jsonb_array_length(coalesce(p_allowed, '[]')) > 0 and not p_allowed ? i.provider then 'provider_forbidden'
    when app.integration_readiness(i, c) not in ('ready', 'degraded') then app.integration_readiness(i, c)
    when p.id is null then null
    when p.status <> 'enabled' then 'profile_disabled'
    when p.kind = 'department' and i.departments <> '[]' and not i.departments ? p.department then 'department'
    when not p.config -> 'toolPolicyKeys' ?| array['integrations.read', 'integrations.propose', 'git.read', 'git.propose']
      then 'tool_policy' end
$$;
