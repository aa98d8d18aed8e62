-- The answer of a transition that changed state and refuses: raising would undo the change.
create or replace function app.problem(p_status integer, p_code text, p_message text, p_issues jsonb default null)
  returns jsonb
  language sql immutable
  set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object('problem', jsonb_strip_nulls(jsonb_build_object(
    'status', p_status, 'code', p_code, 'message', p_message, 'issues', p_issues)))
$$;

alter function app.problem owner to runner_scoped;
revoke all on function app.problem from public;
grant execute on function app.problem to runner_global;
