-- What the next message of a chat has to answer: the pending questions, notes and approvals of its last message, if that is a
-- complete reply. Every user message answers all pending parts, so nothing older can be pending.
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
