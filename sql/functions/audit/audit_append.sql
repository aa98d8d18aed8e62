-- (none) → an audit entry, in the transaction of the decision that it is about; final.
-- p_organization_id: all zero for a decision for the whole platform. p_response: what the transition answered; a problem makes
-- the entry refused. A transition that raises takes the entry back with everything else: what changed nothing was not decided.
-- p_result: what it led to, in short. Returns the id of the entry.
-- Locks: organization (for key share), so that the purge's last step and a late entry exclude each other.
-- Codes: 404 organization_not_found (it is purged).
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
