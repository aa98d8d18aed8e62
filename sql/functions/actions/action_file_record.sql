-- A file of an invocation as its callers see it.
create or replace function app.action_file_record(f app.action_invocation_files)
  returns jsonb
  language sql immutable
as $$
  select jsonb_build_object('fileId', f.id, 'name', f.name, 'contentType', f.content_type, 'sizeBytes', f.size_bytes,
    'sha256', f.sha256)
$$;
