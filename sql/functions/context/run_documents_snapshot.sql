-- Gives a run the documents that are published at its start, as context/{scope}/{path}: the organization's scope and, for a
-- department's profile, that of its department; for other profiles all scopes. Later promotions apply to later runs.
-- An input of the task with the same path takes precedence. A document that the last audit could not read is listed without
-- bytes.
create or replace function app.run_documents_snapshot(p_organization_id uuid, p_run_id uuid, p_department text)
  returns void
  language sql
as $$
  insert into app.run_inputs (organization_id, run_id, path, role, media_type, size, sha256, storage_key)
    select p_organization_id, p_run_id, format('context/%s/%s', d.scope, d.path), 'instructions', 'application/json',
        d.size_bytes, case when not p.unreadable ? d.path then d.sha256 end,
        case when not p.unreadable ? d.path then d.storage_key end
      from app.context_publications p
      join app.context_documents d on d.organization_id = p.organization_id and d.scope = p.scope
        and d.revision = p.revision
      where p.organization_id = p_organization_id
        and (p_department is null or p.scope in ('organization', p_department))
    on conflict (organization_id, run_id, path) do nothing
$$;
