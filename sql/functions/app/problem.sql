-- The response of a transition that has changed state and refuses the call. Raising would undo the change.
create or replace function app.problem(p_status integer, p_code text, p_message text, p_issues jsonb default null)
  returns jsonb
  language sql immutable
as $$
  select jsonb_build_object('problem', jsonb_strip_nulls(jsonb_build_object(
    'status', p_status, 'code', p_code, 'message', p_message, 'issues', p_issues)))
$$;
