-- Checks the answers of a user message against the pending parts of m, the last message of the chat: exactly one for each, in
-- the order of the parts. Returns parts, as the user message stores them, and issues, one for everything that is wrong.
create or replace function app.message_answers(
  p_organization_id uuid, p_chat_id uuid, p_onboarding boolean, m app.messages, p_answers jsonb,
  out parts jsonb, out issues jsonb)
  language plpgsql
as $$
declare
  v_pending jsonb := case when m.id is null then '[]' else app.questions_pending(m) end;
  v_answer jsonb;
  v_index integer;
  v_place integer;
  v_last integer := 0;
  v_answered integer[] := '{}';
  v_path text;
  v_part jsonb;
begin
  parts := '[]';
  issues := '[]';
  for v_answer, v_index in
    select a, place - 1 from jsonb_array_elements(p_answers) with ordinality i(a, place) order by place
  loop
    v_path := format('answers.%s', v_index);
    select i.place, i.part into v_place, v_part
      from jsonb_array_elements(v_pending) with ordinality i(part, place)
      where i.part ->> 'id' = v_answer ->> 'partId' and m.id = (v_answer ->> 'messageId')::uuid;
    if not found then
      if exists (select 1 from app.messages e
          where e.organization_id = p_organization_id and e.chat_id = p_chat_id
            and e.id = (v_answer ->> 'messageId')::uuid
            and e.parts @> jsonb_build_array(jsonb_build_object('id', v_answer ->> 'partId'))) then
        issues := issues || app.issue(v_path, 'not_pending', 'names a part that waits for no answer (any more)');
      else
        issues := issues || app.issue(v_path, 'unknown_question', 'names no part of a message of this chat');
      end if;
      continue;
    end if;
    if v_place = any (v_answered) then
      issues := issues || app.issue(v_path, 'doubled', 'answers a question a second time');
      continue;
    end if;
    if v_place < v_last then
      issues := issues || app.issue(v_path, 'out_of_order', 'answers go in the order of the questions');
    end if;
    v_answered := v_answered || v_place;
    v_last := greatest(v_last, v_place);
    issues := issues || app.answer_issues(v_path, v_part, v_answer, p_onboarding);
    parts := parts || jsonb_build_array(jsonb_build_object('id', app.uuid_v7(),
      'kind', case when coalesce((v_answer ->> 'deferred')::boolean, false) then 'deferral' else 'answer' end,
      'messageId', m.id, 'partId', v_part ->> 'id')
      || case when v_answer ? 'value' then jsonb_build_object('value', v_answer -> 'value') else '{}' end
      || case when v_answer ? 'approved' then jsonb_build_object('approved', v_answer -> 'approved') else '{}' end);
  end loop;
  for v_part, v_place in select i.part, i.place from jsonb_array_elements(v_pending) with ordinality i(part, place) loop
    if not v_place = any (v_answered) then
      issues := issues || app.issue('answers', 'unanswered',
        format('part %s of message %s waits for an answer', v_part ->> 'id', m.id));
    end if;
  end loop;
end
$$;
