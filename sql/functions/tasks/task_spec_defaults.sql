-- The defaults of a spec (docs/interface.md 2.9).
create or replace function app.task_spec_defaults(p_kind text)
  returns jsonb
  language sql immutable
as $$
  select jsonb_build_object('objective', '', 'inputs', '[]'::jsonb, 'acceptanceCriteria', '[]'::jsonb,
    'budget', jsonb_build_object('maxAgentRuns', case p_kind when 'initiative' then 500 else 10 end,
      'maxAttemptsPerPhase', 3, 'maxReplans', 2))
$$;
