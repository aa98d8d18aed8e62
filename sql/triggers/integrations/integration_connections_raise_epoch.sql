-- A connection that comes, goes, is another one, has other scopes, or needs to be authorized again, or no more. A refresh changes
-- nothing of that, and neither does a provider that fails.
create or replace function app.integration_connections_raise_epoch()
  returns trigger
  language plpgsql
as $$
begin
  if tg_op <> 'UPDATE'
     or (new.kind, new.subject_hash, new.granted_scopes, new.grant_hash, new.reauthorization_reason is null)
       is distinct from (old.kind, old.subject_hash, old.granted_scopes, old.grant_hash, old.reauthorization_reason is null) then
    perform app.authorization_epoch_raise(coalesce(new.organization_id, old.organization_id));
  end if;
  return null;
end
$$;
