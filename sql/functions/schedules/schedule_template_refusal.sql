-- The error with which a task of this template would be refused now: {status, code, message, issues}, with paths below
-- taskTemplate; null if it would be created. Creates the task with task_create and rolls back, so that the two always agree.
-- A pending verdict on the parent does not count, because it resolves by itself; task_create checks it last.
-- Locks: as task_create, released on return.
create or replace function app.schedule_template_refusal(p_organization_id uuid, p_template jsonb, p_actor jsonb)
  returns jsonb
  language plpgsql
as $$
declare
  v_state text;
  v_message text;
  v_code text;
  v_issues text;
begin
  perform app.task_create(p_organization_id, p_template, p_actor);
  raise exception using errcode = 'RN201', message = 'taken back';
exception
  when sqlstate 'RN201' then
    return null;
  when sqlstate 'RN400' or sqlstate 'RN404' or sqlstate 'RN409' then
    get stacked diagnostics v_state = returned_sqlstate, v_message = message_text, v_code = pg_exception_detail,
      v_issues = pg_exception_hint;
    if nullif(v_issues, '')::jsonb @> '[{"code": "being_verified"}]' then
      return null;
    end if;
    return jsonb_build_object('status', right(v_state, 3)::integer, 'code', v_code, 'message', v_message, 'issues', (
      select jsonb_agg(i || jsonb_build_object('path', 'taskTemplate.' || (i ->> 'path')))
        from jsonb_array_elements(nullif(v_issues, '')::jsonb) i));
end
$$;
