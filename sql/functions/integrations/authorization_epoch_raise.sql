-- Raises an organization's authorizationEpoch, once a transaction, however many rows change: the setting says that it is done, and
-- ends with the transaction, or with the savepoint that takes it back. Called by the triggers of what agents are given by. The
-- transition has locked the organization before the rows; see integration_lock. The owner of the tables executes it too: what a
-- foreign key removes is removed as the owner.
create or replace function app.authorization_epoch_raise(p_organization_id uuid)
  returns void
  language plpgsql
as $$
begin
  if coalesce(current_setting('app.epoch_raised', true), '') <> p_organization_id::text then
    update app.organizations set authorization_epoch = authorization_epoch + 1, updated_at = clock_timestamp()
      where id = p_organization_id and deleted_at is null;
    perform set_config('app.epoch_raised', p_organization_id::text, true);
  end if;
end
$$;
