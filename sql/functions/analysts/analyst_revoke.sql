-- Revokes everything from an analyst's login: its views are empty from then on, in open sessions too. A repeat returns
-- {revoked: false}. `current`: the grants belonged to the login that has the name now, not to an earlier one.
-- Called by operators only (npm run analyst), in the transaction that drops the login.
create or replace function app.analyst_revoke(p_login text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_oid bigint;
begin
  delete from app.analyst_grants where login = p_login;
  delete from app.analysts where login = p_login returning login_oid into v_oid;
  return jsonb_build_object('login', p_login, 'revoked', found,
    'current', found and v_oid is not distinct from to_regrole(quote_ident(p_login))::oid::bigint);
end
$$;
