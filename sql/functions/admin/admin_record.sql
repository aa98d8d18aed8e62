-- Appends the audit entry of an administrator's decision, in its transaction. Returns the transition's response with the id of
-- the entry: {…, audit_entry_id}. A decision that raises leaves no entry, because it changed nothing.
create or replace function app.admin_record(
  p_organization_id uuid, p_admin text, p_action text, p_subject_kind text, p_subject_id text, p_arguments jsonb,
  p_response jsonb, p_result jsonb, p_request_id text)
  returns jsonb
  language sql
as $$
  select p_response || jsonb_build_object('audit_entry_id', app.audit_append(p_organization_id, 'admin', p_admin, p_action,
    p_subject_kind, p_subject_id, jsonb_strip_nulls(p_arguments), p_response, p_request_id, p_result))
$$;
