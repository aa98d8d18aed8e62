-- The actions of a turn, oldest first: what its calls of the gateway have proposed, and what they were answered with because it was
-- proposed before. p_message_id: its reply.
create or replace function app.turn_actions(p_organization_id uuid, p_message_id uuid)
  returns setof app.actions
  language sql stable
as $$
  select a.*
  from app.actions a
  where a.organization_id = p_organization_id and a.id in (
    select n.action_id
      from app.run_requests q
      join app.action_invocations n on n.organization_id = q.organization_id and n.run_id = q.run_id
      where q.organization_id = p_organization_id and q.message_id = p_message_id and n.action_id is not null)
  order by a.created_at, a.id
$$;
