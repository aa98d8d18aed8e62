-- A chat whose removal has begun is hidden from the administration, and so is what belongs to it: the rows go later, in
-- batches. By the policy of chats, a look at their primary key for each row that is read.
set local role runner_owner;

do $$
declare
  v_table text;
begin
  foreach v_table in array array['messages', 'chat_attachments']
  loop
    execute format($policy$
      alter policy admin_read on app.%1$I
        using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
               and organization_id <> all ((select app.organizations_deleted())::uuid[])
               and exists (select 1 from app.chats c where c.organization_id = %1$I.organization_id and c.id = %1$I.chat_id))
      $policy$, v_table);
  end loop;
end
$$;

reset role;
