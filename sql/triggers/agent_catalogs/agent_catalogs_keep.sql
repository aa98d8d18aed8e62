-- What is published of template catalogs stays: their revisions are digests.
create or replace function app.agent_catalogs_keep()
  returns trigger
  language plpgsql
as $$
begin
  raise exception 'a published catalog is never changed or removed';
end
$$;
