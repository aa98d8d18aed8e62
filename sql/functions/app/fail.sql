-- Refuses a transition that has changed nothing. Raises SQLSTATE RN + HTTP status, with the code in DETAIL and the issues in
-- HINT.
create or replace function app.fail(p_status integer, p_code text, p_message text, p_issues jsonb default null)
  returns void
  language plpgsql
as $$
begin
  raise exception using
    errcode = 'RN' || p_status,
    message = p_message,
    detail = p_code,
    hint = coalesce(p_issues::text, '');
end
$$;
