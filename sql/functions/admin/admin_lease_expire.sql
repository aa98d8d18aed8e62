-- Ends a lease before its deadline: run request leased → published, started → as after the deadline (run_request_lease_end).
-- The holder is fenced: nothing that it sends changes anything. The attempt counts like any expired one.
-- Locks: roots → run request → … as run_request_lease_end.
-- Returns {run_request_id, outcome: republished | expired | cancelled, state, run_id, chatId, audit_entry_id}. A repeat is 409.
-- Codes: 404 organization_not_found | not_found, 409 state_conflict (the request is not leased).
create or replace function app.admin_lease_expire(
  p_organization_id uuid, p_run_request_id uuid, p_admin text, p_max_attempts integer, p_backoff_seconds integer,
  p_backoff_max_seconds integer, p_request_id text default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  r app.run_requests;
  v_task_id uuid;
  v_run_id uuid;
  v_response jsonb;
begin
  if not exists (select 1 from app.organizations where id = p_organization_id and deleted_at is null) then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  select task_id into v_task_id from app.run_requests
    where organization_id = p_organization_id and id = p_run_request_id;
  if v_task_id is not null then
    perform app.task_roots_lock(p_organization_id, array[v_task_id], true);
  end if;
  select * into r from app.run_requests
    where organization_id = p_organization_id and id = p_run_request_id for no key update;
  if not found then
    perform app.fail(404, 'not_found', 'Run request not found');
  end if;
  if r.state not in ('leased', 'started') then
    perform app.fail(409, 'state_conflict', format('Nobody holds a lease of the run request: it is %s', r.state));
  end if;
  v_run_id := case when r.state = 'started' then r.run_id end;
  v_response := app.run_request_lease_end(r, p_max_attempts, p_backoff_seconds, p_backoff_max_seconds);
  select * into r from app.run_requests where organization_id = p_organization_id and id = p_run_request_id;
  v_response := v_response || jsonb_build_object('run_request_id', r.id, 'state', r.state, 'run_id', v_run_id);
  return app.admin_record(p_organization_id, p_admin, 'lease.expire', 'run_request', r.id::text, '{}', v_response,
    jsonb_strip_nulls(jsonb_build_object('outcome', v_response -> 'outcome', 'state', r.state, 'runId', v_run_id)),
    p_request_id);
end
$$;
