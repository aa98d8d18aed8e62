-- What became of actions that a task waited for, as answers for its next run (tasks.answers). A result beyond 4 KiB is left out: the
-- action has it.
create or replace function app.action_results(p_organization_id uuid, p_action_ids jsonb)
  returns jsonb
  language sql stable
as $$
  select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('actionId', a.id, 'purpose', 'action', 'title', a.summary,
      'question', 'What became of the action?', 'response', a.status, 'tool', a.tool,
      'note', coalesce(a.error ->> 'message', a.reconciliation_note, a.decision_note, a.reason ->> 'message'),
      'result', case when octet_length(a.result::text) <= 4096 then a.result end,
      'respondedAt', to_char(a.updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))) order by a.created_at, a.id), '[]')
    from jsonb_array_elements_text(p_action_ids) w(id)
    join app.actions a on a.organization_id = p_organization_id and a.id = w.id::uuid
$$;
