-- Returns {attachment}, with its storage key, of the chat whose turn the run is, for the holder of its lease. Locks nothing.
-- Codes: 404 attachment_not_found, 409 run_lease_expired with lease_lost.
create or replace function app.run_attachment(
  p_organization_id uuid, p_run_id uuid, p_lease_token text, p_attachment_id uuid)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  r app.run_requests;
  a app.chat_attachments;
begin
  select q.* into r from app.run_requests q
    where q.organization_id = p_organization_id
      and q.id = (select k.run_request_id from app.runs k where k.organization_id = p_organization_id and k.id = p_run_id);
  if r.run_id is distinct from p_run_id or r.kind <> 'chat' or r.state <> 'started'
     or not app.lease_is_current(r, p_lease_token) then
    perform app.lease_refuse('lease_lost');
  end if;
  select * into a from app.chat_attachments
    where organization_id = p_organization_id and chat_id = r.chat_id and id = p_attachment_id;
  if not found then
    perform app.fail(404, 'attachment_not_found', 'Attachment not found');
  end if;
  return jsonb_build_object('attachment', to_jsonb(a));
end
$$;
