-- Writes down what a run is given, at its start: later changes of the task's inputs are for later runs.
-- An input that is not there (not uploaded, no such artifact) is listed without bytes. The first of two with one path wins.
create or replace function app.run_inputs_fix(p_organization_id uuid, p_run_id uuid, t app.tasks)
  returns void
  language sql
  set search_path = pg_catalog, pg_temp
as $$
  insert into app.run_inputs (organization_id, run_id, path, role, media_type, size, sha256, content, storage_key)
    select p_organization_id, p_run_id, i.item ->> 'path', 'input',
        coalesce(u.media_type, o.media_type,
          case when i.item ->> 'kind' = 'inline' then coalesce(i.item ->> 'mediaType', 'text/plain') end,
          'application/octet-stream'),
        coalesce(u.size, o.size, octet_length(i.item ->> 'text'), 0),
        coalesce(u.sha256, o.sha256, encode(sha256(convert_to(i.item ->> 'text', 'UTF8')), 'hex')),
        i.item ->> 'text', coalesce(u.storage_key, o.storage_key)
      from jsonb_array_elements(t.spec -> 'inputs') with ordinality i(item, place)
      left join app.task_inputs u on i.item ->> 'kind' = 'upload' and u.organization_id = p_organization_id
        and u.task_id = t.id and u.path = i.item ->> 'path'
      left join app.runs s on i.item ->> 'kind' = 'artifact' and s.organization_id = p_organization_id
        and s.id = (i.item ->> 'runId')::uuid
      left join app.run_outputs o on o.organization_id = p_organization_id and o.run_id = s.id
        and o.path = s.output #>> array['result', 'artifacts', i.item ->> 'artifactIndex', 'path']
      order by i.place
    on conflict (organization_id, run_id, path) do nothing
$$;

alter function app.run_inputs_fix owner to runner_scoped;
revoke all on function app.run_inputs_fix from public;
