-- The completion evidence of a result (docs/interface.md 2.10.4): its runs and checks, and the version of the task and its
-- hierarchy. p_disposition: passed | failed | accepted.
create or replace function app.task_completion(t app.tasks, p_run_ids jsonb, p_disposition text, p_checks jsonb)
  returns jsonb
  language plpgsql stable
as $$
begin
  return jsonb_build_object('version', 1, 'taskVersion', t.version,
    'taskGraphRevision', case when t.parent_id is null then t.graph_revision else (select root.graph_revision
      from app.tasks root where root.organization_id = t.organization_id and root.id = t.root_task_id) end,
    'completionRevision', t.completion_revision + 1, 'runIds', p_run_ids, 'disposition', p_disposition, 'checks', p_checks);
end
$$;
