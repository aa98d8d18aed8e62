-- Inserts a profile with its lanes. p_fields as in agent_profile_create; the key is free.
create or replace function app.agent_profile_insert(p_organization_id uuid, p_fields jsonb)
  returns app.agent_profiles
  language plpgsql
as $$
declare
  p app.agent_profiles;
begin
  insert into app.agent_profiles
      (organization_id, key, name, kind, department, status, root_uri, instructions_uri, config)
    values (p_organization_id, p_fields ->> 'key', p_fields ->> 'name', p_fields ->> 'kind', p_fields ->> 'department',
      coalesce(p_fields ->> 'status', 'enabled'),
      coalesce(p_fields ->> 'rootUri', format('org://%s/profiles/%s', p_organization_id, p_fields ->> 'key')),
      coalesce(p_fields ->> 'instructionsUri',
        format('org://%s/profiles/%s/instructions.md', p_organization_id, p_fields ->> 'key')),
      app.merge_patch(app.agent_profile_defaults(p_organization_id, p_fields ->> 'key'), p_fields -> 'config'))
    returning * into p;
  insert into app.dispatch_lanes (organization_id, agent_profile_id, kind, capacity)
    values (p_organization_id, p.id, 'task', (p.config ->> 'maxConcurrentRuns')::integer),
           (p_organization_id, p.id, 'chat', 20);
  perform app.tasks_settle_verification(p_organization_id);
  return p;
end
$$;
