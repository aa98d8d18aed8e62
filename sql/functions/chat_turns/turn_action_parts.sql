-- Parts for the actions of a turn that p_parts do not name, in the order in which they were proposed. They show no status: a final
-- message never changes. The id of one is that of its action.
create or replace function app.turn_action_parts(p_organization_id uuid, p_message_id uuid, p_parts jsonb)
  returns jsonb
  language sql
as $$
  select coalesce(jsonb_agg(jsonb_build_object('kind', 'action', 'actionId', a.id, 'summary', a.summary,
      'id', case when p_parts @> jsonb_build_array(jsonb_build_object('id', a.id)) then app.uuid_v7() else a.id end)
    order by a.created_at, a.id), '[]')
  from app.turn_actions(p_organization_id, p_message_id) a
  where not p_parts @> jsonb_build_array(jsonb_build_object('kind', 'action', 'actionId', a.id))
$$;
