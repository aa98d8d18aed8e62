-- Lets the job pass over a message that it failed at, for ten minutes. Locks: the piece that waits.
create or replace function app.message_chunks_postpone(p_organization_id uuid, p_message_id uuid)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
begin
  update app.message_chunks set due_at = clock_timestamp() + interval '10 minutes'
    where organization_id = p_organization_id and message_id = p_message_id and search_text is null;
  return jsonb_build_object('postponed', found);
end
$$;
