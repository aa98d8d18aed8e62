-- Run starting | running → succeeded; message pending → complete, and the chat stores summary and harness session.
-- p_output: {kind: chat_message, parts, summary?, harnessSessionId?}. Called by run_complete, which has locked the request and
-- checked the lease.
-- Locks: (run request) → run → chat → message. Returns {status, chatId, messageId, revision}.
-- Codes: 400 validation_failed (the output of a task for a chat turn or the reverse; a part that names no task, or no action of the turn).
create or replace function app.chat_turn_complete(
  r app.run_requests, p_body_hash text, p_output jsonb, p_report jsonb)
  returns jsonb
  language plpgsql
as $$
declare
  m app.messages;
  v_parts jsonb;
begin
  if r.kind <> 'chat' or p_output ->> 'kind' is distinct from 'chat_message' then
    perform app.fail(400, 'validation_failed', 'The output does not go with the run',
      app.issue('output.kind', 'output_of_kind', 'is task_result for tasks and chat_message for chat turns'));
  end if;
  v_parts := app.turn_parts(r, 'output.parts', p_output -> 'parts');
  perform app.run_finish(r, 'succeeded', 'complete', p_body_hash,
    jsonb_build_object('kind', 'chat_message', 'messageId', r.message_id), null, p_report);
  update app.chats
    set summary = coalesce(p_output ->> 'summary', summary),
      harness_session_id = coalesce(p_output ->> 'harnessSessionId', harness_session_id),
      last_message_at = greatest(clock_timestamp(), last_message_at),
      updated_at = greatest(clock_timestamp(), updated_at)
    where organization_id = r.organization_id and id = r.chat_id;
  select * into m from app.messages where organization_id = r.organization_id and id = r.message_id;
  m := app.message_end(r.organization_id, r.message_id, 'complete', null,
    app.message_parts('output.parts', m.parts, coalesce(v_parts, m.parts)));
  return jsonb_build_object('status', 'succeeded', 'chatId', m.chat_id, 'messageId', m.id, 'revision', m.revision);
end
$$;
