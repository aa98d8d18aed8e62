-- Takes everything from the login of an analyst: its views are empty from then on, also in sessions that are open. A repeat
-- answers {revoked: false}. `current`: what was taken was that of the login that has the name now, and not of an earlier one.
-- Called by operators alone (npm run analyst), in the transaction that drops the login.
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
