-- Stores what a run in mode plan or verify gets in addition to the inputs of its task: task.json, which describes the state of
-- the task, and for a verifier, below outputs/, the files to verify. These are the outputs of the run that produced the result;
-- for an initiative, the outputs of the runs that its children's results name, each below the identifier of the child.
create or replace function app.run_context_snapshot(p_organization_id uuid, p_run_id uuid, t app.tasks, p_mode text)
  returns void
  language plpgsql
as $$
declare
  v_text text;
begin
  update app.tasks set replan = replan - 'missed'
    where organization_id = p_organization_id and id = t.id and replan ? 'missed';
  v_text := jsonb_pretty(jsonb_strip_nulls(jsonb_build_object('id', t.id,
    'identifier', t.identifier_scope || '-' || t.identifier_number, 'kind', t.kind, 'title', t.title, 'mode', p_mode,
    'spec', t.spec, 'replan', t.replan - 'missed', 'replanCount', t.replan_count, 'contract', t.contract,
    'answers', t.answers,
    'verification', case p_mode when 'verify' then t.verification end,
    'children', app.task_children(p_organization_id, t.id))));
  insert into app.run_inputs (organization_id, run_id, path, role, media_type, size, sha256, content)
    values (p_organization_id, p_run_id, 'task.json', 'instructions', 'application/json', octet_length(v_text),
      encode(sha256(convert_to(v_text, 'UTF8')), 'hex'), v_text);
  if p_mode = 'verify' then
    insert into app.run_inputs (organization_id, run_id, path, role, media_type, size, sha256, storage_key)
      select p_organization_id, p_run_id, 'outputs/' || s.prefix || u.path, 'input', u.media_type, u.size, u.sha256,
          u.storage_key
        from (
          select (t.verification ->> 'runId')::uuid as run_id, '' as prefix where t.verification ? 'runId'
          union all
          select distinct (a ->> 'runId')::uuid, c.identifier_scope || '-' || c.identifier_number || '/'
            from app.tasks c
            cross join jsonb_array_elements(coalesce(c.result -> 'artifacts', '[]')) a
            where c.organization_id = p_organization_id and c.parent_id = t.id and t.kind = 'initiative'
        ) s
        join app.run_outputs u on u.organization_id = p_organization_id and u.run_id = s.run_id
        order by s.prefix, u.path
        limit 1000
      on conflict (organization_id, run_id, path) do nothing;
  end if;
end
$$;
