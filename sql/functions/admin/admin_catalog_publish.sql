-- Publishes a template catalog (agent_catalog_publish) by decision of an administrator, with an audit entry of the whole
-- platform. p_revision: the SHA-256 of its canonical JSON, computed by the caller. A catalog that is already published stays
-- unchanged, which is recorded too.
-- Returns {revision, published, audit_entry_id}. Codes: none.
create or replace function app.admin_catalog_publish(
  p_revision text, p_catalog jsonb, p_admin text, p_request_id text default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_response jsonb := app.agent_catalog_publish(p_revision, p_catalog);
begin
  return v_response || jsonb_build_object('audit_entry_id', app.audit_append('00000000-0000-0000-0000-000000000000', 'admin',
    p_admin, 'catalog.publish', 'catalog', p_revision,
    jsonb_strip_nulls(jsonb_build_object('revision', p_revision, 'version', p_catalog -> 'version', 'profiles', (
      select jsonb_agg(t -> 'key') from jsonb_array_elements(p_catalog -> 'profiles') t))),
    v_response, p_request_id, jsonb_build_object('published', v_response -> 'published')));
end
$$;
