-- Run request queued → published, without its backoff; while work dispatch is stopped it stays queued and becomes due. Run
-- request leased → published: the claim is revoked and its holder fenced, and no attempt is counted. A published one keeps its
-- place.
-- A started request is 409 (see admin_lease_expire), and so is one that is over (see admin_task_retry).
-- Locks: run request → (commit) dispatch. Returns {run_request_id, state, outcome: published | due | unchanged,
-- audit_entry_id}.
-- Codes: 404 organization_not_found | not_found, 409 state_conflict.
create or replace function app.admin_run_request_requeue(
  p_organization_id uuid, p_run_request_id uuid, p_admin text, p_request_id text default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  r app.run_requests;
  v_stopped boolean;
  v_outcome text := 'unchanged';
begin
  if not exists (select 1 from app.organizations where id = p_organization_id and deleted_at is null) then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  select * into r from app.run_requests
    where organization_id = p_organization_id and id = p_run_request_id for no key update;
  if not found then
    perform app.fail(404, 'not_found', 'Run request not found');
  end if;
  if r.state not in ('queued', 'published', 'leased') then
    perform app.fail(409, 'state_conflict', format('The run request is %s, and is not queued again', r.state));
  end if;
  -- Read after the lock, which stopping work dispatch holds until its commit.
  select stopped into v_stopped from app.dispatch where organization_id = p_organization_id and kind = r.kind;
  if r.state = 'leased' then
    v_outcome := 'published';
    update app.run_requests set state = 'published', lease_secret_hash = null, lease_expires_at = null
      where organization_id = p_organization_id and id = r.id returning * into r;
  elsif r.state = 'queued' then
    v_outcome := case when v_stopped then 'due' else 'published' end;
    update app.run_requests
      set state = case when v_stopped then 'queued' else 'published' end, parked = v_stopped,
        due_at = least(due_at, clock_timestamp()),
        published_at = case when v_stopped then published_at else clock_timestamp() end
      where organization_id = p_organization_id and id = r.id returning * into r;
  end if;
  return app.admin_record(p_organization_id, p_admin, 'run_request.requeue', 'run_request', r.id::text, '{}',
    jsonb_build_object('run_request_id', r.id, 'state', r.state, 'outcome', v_outcome),
    jsonb_build_object('outcome', v_outcome, 'state', r.state), p_request_id);
end
$$;
