-- An action as transitions return it: its row, with its files. Without what only the database compares.
create or replace function app.action_record(a app.actions)
  returns jsonb
  language sql stable
as $$
  select to_jsonb(a) - array['lease_id', 'proposal_sha256', 'subject_hash', 'tool_digest'] || jsonb_build_object('files', (
    select coalesce(jsonb_agg(jsonb_build_object('argument', f.argument, 'name', f.name, 'contentType', f.content_type,
        'sizeBytes', f.size_bytes, 'sha256', f.sha256) order by f.argument), '[]')
      from app.action_files f where f.organization_id = a.organization_id and f.action_id = a.id))
$$;
