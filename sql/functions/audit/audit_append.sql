-- Audit entry (none) → final, in the transaction of the decision that it records.
-- p_organization_id: all zeros for a decision about the whole platform. p_response: what the transition returned; if it is a
-- problem, the entry is `refused`. If the transition raises, its entry is rolled back with it. p_result: the result in brief.
-- Returns the id of the entry.
-- Locks: organization (key share), so that the last step of a purge and a late entry exclude each other.
-- Codes: 404 organization_not_found (purged).
create or replace function app.audit_append(
  p_organization_id uuid, p_actor_kind text, p_actor text, p_action text, p_subject_kind text, p_subject_id text,
  p_arguments jsonb, p_response jsonb default null, p_request_id text default null, p_result jsonb default null)
  returns uuid
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_id uuid;
begin
  if p_organization_id <> '00000000-0000-0000-0000-000000000000' then
    perform 1 from app.organizations where id = p_organization_id for key share;
    if not found then
      perform app.fail(404, 'organization_not_found', 'Organization not found');
    end if;
  end if;
  insert into app.audit_entries (organization_id, actor_kind, actor, action, subject_kind, subject_id, arguments, outcome,
      code, result, request_id)
    values (p_organization_id, p_actor_kind, p_actor, p_action, p_subject_kind, p_subject_id, app.audit_bounded(p_arguments),
      case when p_response ? 'problem' then 'refused' else 'done' end, p_response #>> '{problem,code}',
      app.audit_bounded(p_result), p_request_id)
    returning id into v_id;
  return v_id;
end
$$;
