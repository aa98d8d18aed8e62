-- Parts as a runtime has written them for its turn. A task has to be one of the organization, an action one of the turn, whose own
-- summary stands. null stays null. Codes: 400 validation_failed (unknown_task, unknown_action).
create or replace function app.turn_parts(r app.run_requests, p_path text, p_parts jsonb)
  returns jsonb
  language plpgsql stable
as $$
declare
  v_issues jsonb;
begin
  if not p_parts @? '$[*] ? (@.kind == "task" || @.kind == "action")' then
    return p_parts;
  end if;
  select jsonb_agg(case i.part ->> 'kind'
        when 'task' then app.issue(format('%s.%s.taskId', p_path, i.place - 1), 'unknown_task', 'names no task of this organization')
        else app.issue(format('%s.%s.actionId', p_path, i.place - 1), 'unknown_action', 'names no action of this turn') end -> 0
      order by i.place)
    into v_issues
    from jsonb_array_elements(p_parts) with ordinality i(part, place)
    where i.part ->> 'kind' = 'task' and not exists (
        select from app.tasks t where t.organization_id = r.organization_id and t.id = (i.part ->> 'taskId')::uuid)
      or i.part ->> 'kind' = 'action' and not exists (
        select from app.turn_actions(r.organization_id, r.message_id) a where a.id = (i.part ->> 'actionId')::uuid);
  if v_issues is not null then
    perform app.fail(400, 'validation_failed', 'A part names something that is not there', v_issues);
  end if;
  return (
    select jsonb_agg(case when a.id is null then i.part
        else jsonb_build_object('id', a.id) || i.part || jsonb_build_object('actionId', a.id, 'summary', a.summary) end
      order by i.place)
    from jsonb_array_elements(p_parts) with ordinality i(part, place)
    left join app.turn_actions(r.organization_id, r.message_id) a
      on i.part ->> 'kind' = 'action' and a.id = (i.part ->> 'actionId')::uuid);
end
$$;
