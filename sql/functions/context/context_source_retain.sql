-- Records a copy of a chat attachment or of a run's artifact as a source: chats are purged 30 days after they were archived,
-- and evidence stays (docs/interface.md 2.8). p_source as in context_source_insert; null: only checks, before the copy. A
-- repeat returns the first source with `stored: false`, and the caller deletes its copy.
-- Locks: run request of a capability. Returns {source, stored}.
-- Codes: 401 agent_unauthorized, 404 organization_not_found, 409 state_conflict.
create or replace function app.context_source_retain(p_organization_id uuid, p_source jsonb, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  s app.context_sources;
begin
  perform app.actor_require(p_organization_id, p_actor);
  if (select count(*) from (
        select from app.context_sources where organization_id = p_organization_id limit 10000) c) >= 10000 then
    perform app.fail(409, 'state_conflict', 'An organization retains at most 10 000 sources');
  end if;
  if p_source is null then
    return '{"source": null, "stored": false}';
  end if;
  s := app.context_source_insert(p_organization_id, p_source);
  return jsonb_build_object('source', to_jsonb(s), 'stored', s.storage_key = p_source ->> 'storageKey');
end
$$;
