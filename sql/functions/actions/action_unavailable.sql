-- Why a profile may not do something with an integration now, or null: at the proposal, and again before it is executed. c: its
-- connection, t: the tool, each null without one. Of a push there is no tool; it takes what integration_git_check asks of a profile.
-- p_allowed: constraints.allowedIntegrations.
create or replace function app.action_unavailable(
  i app.integrations, c app.integration_connections, p app.agent_profiles, t app.integration_tools, p_kind text, p_allowed jsonb)
  returns text
  language sql immutable
as $$
  select coalesce(app.integration_unavailable(i, c, p, p_allowed), case
    when p_kind = 'git_push' then case
      when i.access_mode <> 'full' then 'read_only'
      when p.department is distinct from 'engineering' then 'department'
      when not p.config -> 'toolPolicyKeys' ?& array['git.read', 'git.propose'] then 'tool_policy' end
    when t.key is null or not t.enabled then 'tool_disabled'
    when t.effect <> 'write' then 'tool_changed'
    else coalesce(app.integration_tool_unavailable(i, c, t), case
      when not p.config -> 'toolPolicyKeys' ? 'integrations.propose' then 'tool_policy' end) end)
$$;
