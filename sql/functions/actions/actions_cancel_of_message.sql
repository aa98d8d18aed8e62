-- Cancels what awaits or has an approval of a reply that was cancelled or has failed. The caller has locked the request of the turn.
create or replace function app.actions_cancel_of_message(p_organization_id uuid, p_message_id uuid)
  returns void
  language sql
as $$
  select app.actions_cancel(p_organization_id, array(
      select a.id from app.actions a
        where a.organization_id = p_organization_id and a.message_id = p_message_id and a.status in ('awaiting_approval', 'approved')),
    '{"code": "reply_ended", "message": "Its reply was cancelled, or has failed"}')
$$;
