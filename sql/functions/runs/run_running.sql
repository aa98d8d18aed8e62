-- Run starting → running, with harness, model and workspace. A repeat with the same content changes nothing. A run that was
-- cancelled meanwhile stays cancelled and records all three; the status cancelling is returned.
-- Locks: run request → run. Codes: 409 run_lease_expired with lease_lost | differs.
create or replace function app.run_running(
  p_organization_id uuid, p_run_id uuid, p_lease_token text, p_harness text, p_model text, p_workspace_uri text)
  returns jsonb
  language plpgsql security definer
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  r app.run_requests;
  v_run app.runs;
begin
  r := app.run_request_lock(p_organization_id, p_run_id);
  if r.run_id is distinct from p_run_id or r.state <> 'started' or not app.lease_is_current(r, p_lease_token) then
    perform app.lease_refuse('lease_lost');
  end if;
  -- Runs change only under the lock of their request, so this condition on the state cannot be stale.
  update app.runs
    set status = case status when 'starting' then 'running' else status end,
      harness = p_harness, model = p_model, workspace_uri = p_workspace_uri, updated_at = clock_timestamp()
    where organization_id = p_organization_id and id = p_run_id
      and (status = 'starting' or status = 'cancelled' and coalesce(harness, model, workspace_uri) is null);
  if not found then
    select * into v_run from app.runs where organization_id = p_organization_id and id = p_run_id;
    if (v_run.harness, v_run.model, v_run.workspace_uri) is distinct from (p_harness, p_model, p_workspace_uri) then
      perform app.lease_refuse('differs');
    end if;
  end if;
  return jsonb_build_object('status', case when r.cancel_requested_at is null then 'running' else 'cancelling' end);
end
$$;
