-- started → finished: the lease and its capability end.
create or replace function app.run_request_finish(p_organization_id uuid, p_run_request_id uuid)
  returns void
  language plpgsql
as $$
begin
  update app.run_requests
    set state = 'finished', finished_at = clock_timestamp(), lease_secret_hash = null, lease_expires_at = null
    where organization_id = p_organization_id and id = p_run_request_id;
end
$$;
