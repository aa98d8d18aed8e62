-- Removes flows and capabilities whose end is an hour ago, at most p_rows of each. Until then a callback that is delivered late finds
-- how its flow ended. Reads and deletes of all tenants. Returns {removed}.
create or replace function app.integration_flows_clean(p_rows integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_before constant timestamptz := clock_timestamp() - interval '1 hour';
  v_flows integer;
  v_capabilities integer;
begin
  delete from app.integration_oauth_states o
    using (select organization_id, id from app.integration_oauth_states
      where expires_at < v_before order by expires_at limit p_rows) d
    where o.organization_id = d.organization_id and o.id = d.id;
  get diagnostics v_flows = row_count;
  delete from app.integration_gateway_capabilities g
    using (select organization_id, token_hash from app.integration_gateway_capabilities
      where expires_at < v_before order by expires_at limit p_rows) d
    where g.organization_id = d.organization_id and g.token_hash = d.token_hash;
  get diagnostics v_capabilities = row_count;
  return jsonb_build_object('removed', v_flows + v_capabilities);
end
$$;
