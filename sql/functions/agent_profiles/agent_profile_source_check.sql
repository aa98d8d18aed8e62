-- Checks that a catalogSource sent by a client names a template of a published catalog: provisioning uses it to find the
-- profile, and to tell a person's edits from the template's values. Codes: 400 validation_failed.
create or replace function app.agent_profile_source_check(p_source jsonb)
  returns void
  language plpgsql stable
as $$
begin
  if p_source is not null and not exists (
    select 1 from app.agent_catalogs c, jsonb_array_elements(c.catalog -> 'profiles') t
      where c.revision = p_source ->> 'revision' and t ->> 'key' = p_source ->> 'templateKey') then
    perform app.fail(400, 'validation_failed', 'The request is not valid.',
      app.issue('config.catalogSource', 'unknown_template', 'names no template of a published catalog'));
  end if;
end
$$;
