-- Disconnects what hangs on a revoked authorization in the organization that revoked it, where it is as it was then; the rest is
-- told: also what was authorized again since, which keeps its revision. Called by integration_grant_delete.
-- Locks: organization → integrations by id → connections → … as actions_cancel_of_integrations.
-- Codes: 404 organization_not_found.
create or replace function app.integration_grant_unlink(
  p_organization_id uuid, p_grant_hash text, p_connections jsonb, p_began_at timestamptz)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_item jsonb;
  v_unlinked jsonb := '[]';
  v_changed jsonb := '[]';
  v_ids uuid[] := '{}';
  i app.integrations;
begin
  perform 1 from app.organizations where id = p_organization_id and deleted_at is null for no key update;
  if not found then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  for i in
    select n.* from app.integrations n
      where n.organization_id = p_organization_id
        and (p_connections @> jsonb_build_array(jsonb_build_object('id', n.id))
          or exists (select from app.integration_connections k
            where k.organization_id = n.organization_id and k.integration_id = n.id and k.grant_hash = p_grant_hash))
      order by n.id for no key update
  loop
    v_item := jsonb_build_object('id', i.id, 'key', i.key);
    if p_connections @> jsonb_build_array(jsonb_build_object('id', i.id, 'revision', i.connection_revision))
       and exists (select from app.integration_connections k
         where k.organization_id = i.organization_id and k.integration_id = i.id and k.grant_hash = p_grant_hash
           and k.connected_at <= p_began_at) then
      perform app.integration_connection_drop(i);
      v_ids := v_ids || i.id;
      v_unlinked := v_unlinked || v_item;
    else
      v_changed := v_changed || v_item;
    end if;
  end loop;
  -- All integrations come before the first root.
  perform app.actions_cancel_of_integrations(p_organization_id, v_ids);
  return jsonb_build_object('unlinked', v_unlinked, 'changedMeanwhile', v_changed);
end
$$;
