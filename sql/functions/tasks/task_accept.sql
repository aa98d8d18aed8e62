-- Task blocked by the question i about its result → completed with that result and the disposition `accepted`: a person has
-- decided, so no verdict follows. What is still open below it is cancelled.
-- The caller has locked the roots. Locks: (roots) → run requests → runs → (commit) dispatch.
create or replace function app.task_accept(i app.human_inbox_items)
  returns void
  language plpgsql
as $$
declare
  t app.tasks;
  v_result jsonb;
begin
  select * into t from app.tasks where organization_id = i.organization_id and id = i.task_id;
  select u.output -> 'result' into v_result from app.runs u
    where u.organization_id = i.organization_id and u.id = i.run_id and u.output #>> '{result,kind}' = 'completed';
  -- The result of an initiative belongs to no run.
  v_result := coalesce(v_result, t.verification -> 'result', '{"kind": "completed", "summary": "", "artifacts": []}');
  v_result := v_result || jsonb_build_object('completion', app.task_completion(t,
    coalesce(v_result #> '{completion,runIds}', '[]'), 'accepted',
    coalesce(v_result #> '{completion,checks}', t.contract -> 'checks', '[]')));
  update app.tasks
    set status = 'completed', phase = 'closed', blockers = '[]', completed_at = clock_timestamp(),
      completion_revision = completion_revision + 1, contract = null, replan = null, waiting_action_ids = null,
      result = v_result
    where organization_id = t.organization_id and id = t.id;
  if t.kind = 'initiative' then
    perform app.tasks_cancel(t.organization_id, array(
      with recursive down as (
        select c.id from app.tasks c where c.organization_id = t.organization_id and c.parent_id = t.id
        union all
        select c.id from app.tasks c join down on c.parent_id = down.id where c.organization_id = t.organization_id
      )
      select id from down), null);
  end if;
  perform app.tasks_propagate_end(t.organization_id, array[t.id]);
end
$$;
