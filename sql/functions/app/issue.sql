-- One entry of `error.issues`, as the array that app.fail and app.problem take.
create or replace function app.issue(p_path text, p_code text, p_message text)
  returns jsonb
  language sql immutable
as $$
  select jsonb_build_array(jsonb_build_object('path', p_path, 'code', p_code, 'message', p_message))
$$;
