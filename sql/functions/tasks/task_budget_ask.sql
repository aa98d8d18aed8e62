-- Asks a person, once, to raise the budget that blocks the task: its run budget or spend limit, that of an initiative above it,
-- or its replans. The caller has locked the root.
create or replace function app.task_budget_ask(t app.tasks)
  returns void
  language plpgsql
as $$
declare
  v_replans constant boolean := coalesce(t.replan ? 'asked', false);
  v_exhausted constant jsonb := app.task_budgets_exhausted(t.organization_id, t.id);
begin
  insert into app.human_inbox_items (organization_id, kind, purpose, blocking, title, body, options, task_id)
    values (t.organization_id, 'question', 'budget', true,
      left(case when v_replans then 'Replans used up: '
        when v_exhausted @> '[{"budget": "maxAgentRuns"}]' then 'Run budget used up: '
        else 'Spend limit used up: ' end || t.title, 500),
      format(case when v_replans
          then '%s needs another plan, and has used its replans. Raise them by one allowance, or cancel it.'
          else '%s has used up its budget, or that of a parent (%s). Raise it by one allowance, or cancel the task.' end,
        t.identifier_scope || '-' || t.identifier_number,
        (select string_agg(format('%s of %s: %s of %s', e ->> 'budget', e ->> 'identifier', e ->> 'used', e ->> 'allowed'), ', ')
          from jsonb_array_elements(v_exhausted) e)),
      '["raise", "cancel"]', t.id)
    on conflict (organization_id, task_id, purpose)
      where status = 'open' and purpose in ('repair', 'budget', 'prerequisite') do nothing;
end
$$;
