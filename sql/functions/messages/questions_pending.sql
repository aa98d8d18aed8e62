-- What a chat's next message has to answer: the questions, and the notes and approvals that wait for a decision, of its
-- last message, when that is a complete answer. Every later user message has answered them all, so nothing older waits.
create or replace function app.questions_pending(m app.messages)
  returns jsonb
  language sql immutable
as $$
  select coalesce(jsonb_agg(i.part order by i.place), '[]')
  from jsonb_array_elements(m.parts) with ordinality i(part, place)
  where m.role = 'assistant' and m.status = 'complete'
    and (i.part ->> 'kind' = 'question'
         or i.part ->> 'kind' in ('context_note', 'approval') and coalesce(i.part ->> 'status', 'pending') = 'pending')
$$;
