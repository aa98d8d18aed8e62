-- Takes everything from the login of an analyst: its views are empty from then on, also in sessions that are open. A repeat
-- answers {revoked: false}. Called by operators alone (npm run analyst), in the transaction that drops the login.
create or replace function app.analyst_revoke(p_login text)
  returns jsonb
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  delete from app.analyst_grants where login = p_login;
  delete from app.analysts where login = p_login;
  return jsonb_build_object('login', p_login, 'revoked', found);
end
$$;

alter function app.analyst_revoke owner to runner_global;
revoke all on function app.analyst_revoke from public;
