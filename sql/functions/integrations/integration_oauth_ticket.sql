-- What the page that begins a flow shows. Changes nothing: the button does. Returns {flow}, flow null for a ticket that is unknown,
-- used or past its end. Locks: none.
create or replace function app.integration_oauth_ticket(p_organization_id uuid, p_ticket_hash text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  o app.integration_oauth_states;
begin
  select * into o from app.integration_oauth_states
    where organization_id = p_organization_id and ticket_hash = p_ticket_hash and expires_at > clock_timestamp();
  return jsonb_build_object('flow', app.integration_oauth_flow(o));
end
$$;
