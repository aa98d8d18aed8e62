-- Makes the operator, chat and selected department profiles equal to a catalog revision (docs/interface.md 4.3). Changes only
-- profiles with a catalogSource, whatever their key is; keeps edited names; never widens a tool policy that was narrowed;
-- disables department profiles of the catalog that are not selected. Safe to repeat.
-- p_kinds: only these kinds are provisioned.
-- Locks: organization → profiles → … as agent_profile_apply. Returns {revision, agent_profiles[], disabled_profile_ids[]}.
-- Codes: 404 request_failed (organization, revision), 409 state_conflict (a profile made by hand has the key), 503
-- request_failed (no catalog is published).
create or replace function app.agent_profiles_provision(p_organization_id uuid, p_departments text[], p_revision text,
  p_kinds text[] default '{operator, chat, department}')
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  c app.agent_catalogs;
  v_template jsonb;
  v_before jsonb;
  v_config jsonb;
  v_kept jsonb;
  o app.agent_profiles;
  n app.agent_profiles;
  v_ids uuid[] := '{}';
begin
  perform 1 from app.organizations where id = p_organization_id and deleted_at is null for no key update;
  if not found then
    perform app.fail(404, 'request_failed', 'Organization not found');
  end if;
  if p_revision is null then
    select * into c from app.agent_catalogs order by ordinal desc limit 1;
    if not found then
      perform app.fail(503, 'request_failed', 'No template catalog is published');
    end if;
  else
    select * into c from app.agent_catalogs where revision = p_revision;
    if not found then
      perform app.fail(404, 'request_failed', 'No template catalog has this revision',
        app.issue('revision', 'not_found', 'names no published catalog'));
    end if;
  end if;

  for v_template in select t from jsonb_array_elements(c.catalog -> 'profiles') t
      where t ->> 'kind' = any (p_kinds)
        and (t ->> 'kind' in ('operator', 'chat') or t ->> 'department' = any (p_departments)) loop
    v_config := (v_template -> 'config') || jsonb_build_object(
      'skillKeys', (c.catalog -> 'commonSkillKeys')
        || ((v_template -> 'skillKeys') - array(select jsonb_array_elements_text(c.catalog -> 'commonSkillKeys'))),
      'mcpServerKeys', (c.catalog -> 'commonMcpServerKeys')
        || ((v_template -> 'mcpServerKeys') - array(select jsonb_array_elements_text(c.catalog -> 'commonMcpServerKeys'))),
      'catalogSource', jsonb_build_object('templateKey', v_template ->> 'key', 'revision', c.revision));
    select * into o from app.agent_profiles
      where organization_id = p_organization_id and config #>> '{catalogSource,templateKey}' = v_template ->> 'key'
        and deleted_at is null
      order by created_at, id limit 1 for no key update;
    if not found then
      if exists (select 1 from app.agent_profiles where organization_id = p_organization_id
                   and key = v_template ->> 'key' and deleted_at is null) then
        perform app.fail(409, 'state_conflict',
          format('The key %s is held by a profile that is not this template''s', v_template ->> 'key'),
          app.issue('departments', 'key_held', format('rename or remove the profile %s first', v_template ->> 'key')));
      end if;
      o := app.agent_profile_insert(p_organization_id, jsonb_build_object('key', v_template ->> 'key',
        'name', v_template ->> 'name', 'kind', v_template ->> 'kind', 'department', v_template ->> 'department',
        'config', v_config));
      update app.organizations set authorization_epoch = authorization_epoch + 1, updated_at = clock_timestamp()
        where id = p_organization_id;
    else
      -- The old template: only it tells an edit from an old default.
      select t into v_before from app.agent_catalogs b, jsonb_array_elements(b.catalog -> 'profiles') t
        where b.revision = o.config #>> '{catalogSource,revision}' and t ->> 'key' = v_template ->> 'key';
      n := o;
      if v_before is null or o.name = v_before ->> 'name' then
        n.name := v_template ->> 'name';
      end if;
      n.kind := v_template ->> 'kind';
      n.department := v_template ->> 'department';
      n.status := 'enabled';
      n.config := o.config || v_config;
      n.tool_policy_narrowed := o.tool_policy_narrowed
        or not (o.config -> 'toolPolicyKeys') @> coalesce(v_before #> '{config,toolPolicyKeys}', '[]');
      if n.tool_policy_narrowed then
        select coalesce(jsonb_agg(k), '[]') into v_kept
          from jsonb_array_elements(v_config -> 'toolPolicyKeys') k
          where (o.config -> 'toolPolicyKeys') @> k;
        n.config := jsonb_set(n.config, '{toolPolicyKeys}', v_kept);
      end if;
      o := app.agent_profile_apply(o, n);
    end if;
    v_ids := v_ids || o.id;
  end loop;

  for o in select * from app.agent_profiles p
      where p.organization_id = p_organization_id and p.deleted_at is null and p.kind = 'department'
        and p.config ? 'catalogSource' and p.status = 'enabled' and not p.id = any (v_ids)
        and 'department' = any (p_kinds)
      order by p.id for no key update loop
    n := o;
    n.status := 'disabled';
    perform app.agent_profile_apply(o, n);
  end loop;
  return jsonb_build_object('revision', c.revision,
    'agent_profiles', (select coalesce(jsonb_agg(to_jsonb(p) order by array_position(v_ids, p.id)), '[]')
      from app.agent_profiles p where p.organization_id = p_organization_id and p.id = any (v_ids)),
    'disabled_profile_ids', (select coalesce(jsonb_agg(p.id order by p.id), '[]') from app.agent_profiles p
      where p.organization_id = p_organization_id and p.deleted_at is null and p.kind = 'department'
        and p.config ? 'catalogSource' and p.status = 'disabled'));
end
$$;
