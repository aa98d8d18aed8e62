-- Why the run cannot complete with its staged outcome: {code, message, retryable} if there is none, or if its plan can no
-- longer be applied. Null if it can complete.
create or replace function app.run_outcome_error(r app.run_requests, t app.tasks, o app.task_outcomes)
  returns jsonb
  language plpgsql stable
as $$
declare
  v_issues jsonb;
begin
  if o.run_id is null then
    return jsonb_build_object('code', 'outcome_missing', 'retryable', true,
      'message', format('A run of mode %s has to hand in its outcome before it completes', r.mode));
  elsif o.kind = 'plan' then
    v_issues := app.plan_issues(r.organization_id, t, o.outcome -> 'operations') -> 'issues';
    if v_issues is not null then
      return jsonb_build_object('code', 'plan_rejected', 'retryable', true, 'message',
        left('The plan does not fit any more: ' || (select string_agg(format('%s: %s', i ->> 'path', i ->> 'message'), '; ')
          from jsonb_array_elements(v_issues) i), 2000));
    end if;
  end if;
  return null;
end
$$;
